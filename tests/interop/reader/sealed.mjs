// Sealed objects, IPM1 (FORMAT.md 3): opening only.

import { inflateRawSync } from 'node:zlib'
import { xchacha20poly1305 } from '@noble/ciphers/chacha'
import { blake2b } from '@noble/hashes/blake2'
import { hex, join, len, need, number, refuse, same } from './bytes.mjs'
import { expand, extract } from './keys.mjs'

export const RING_BODY = 1
export const COMMIT = 2
export const MEMORY = 3
export const SEGMENT = 4
export const NODE = 7
export const CARD = 8

const MOST_OBJECT = 1 << 20
export const MOST_FILE = 983040

export function pad(size) {
  if (size <= 512) return 512
  if (size <= 8192) return 2 ** Math.ceil(Math.log2(size))
  const e = Math.floor(Math.log2(size))
  const unit = 2 ** (e - Math.floor(Math.log2(e)) - 1)
  return Math.ceil(size / unit) * unit
}

/** One raw deflate stream, whole and alone; refused as zlib refuses it. */
export function inflate(stream) {
  let done
  try {
    done = inflateRawSync(stream, { maxOutputLength: MOST_FILE, info: true })
  } catch {
    refuse('open')
  }
  need(done.engine.bytesWritten === stream.length, 'open')
  return done.buffer
}

/** An epoch key of a vault: its number, its bytes and what it makes. */
export class EpochKey {
  constructor(epoch, key, tag) {
    Object.assign(this, { epoch, key, tag })
    this.prk = extract(tag, key)
    this.id = hex(expand(this.prk, join('ipfsmem/v1/ek-id', [0], number(epoch, 4)), 8))
    this.derived = new Map()
  }

  part(label, type) {
    const name = `${label} ${type}`
    if (!this.derived.has(name)) {
      this.derived.set(name, expand(this.prk, join(`ipfsmem/v1/obj-${label}`, [0], number(this.epoch, 4), [type]), 32))
    }
    return this.derived.get(name)
  }

  /** The payload of an object of this type and context; one and the same error for whatever is wrong. */
  open(type, ctx, object) {
    need(object.length <= MOST_OBJECT && object.length > 44 && object.subarray(0, 4).toString('latin1') === 'IPM1', 'open')
    const nonce = object.subarray(4, 28)
    const aad = join('IPM1', [type, 1], number(this.epoch, 4), this.tag, len(16, ctx))
    let text
    try {
      text = Buffer.from(xchacha20poly1305(this.part('enc', type), nonce, aad).decrypt(object.subarray(28)))
    } catch {
      refuse('open')
    }
    need(same(nonce, Buffer.from(blake2b(join(len(32, aad), text), { key: this.part('nonce', type), dkLen: 24 }))), 'open')
    need(text.length >= 4, 'open')
    const said = text.readUInt32BE(0)
    const compressed = said >= 0x80000000
    const size = compressed ? said - 0x80000000 : said
    need(size <= text.length - 4 && text.length === pad(4 + size), 'open')
    need(
      text.subarray(4 + size).every(byte => byte === 0),
      'open'
    )
    const stored = text.subarray(4, 4 + size)
    if (!compressed) return stored
    need(type === MEMORY, 'open')
    const payload = inflate(stored)
    need(pad(4 + stored.length) < pad(4 + payload.length), 'open')
    return payload
  }
}
