/** Sealed objects, IPM1 (FORMAT.md 3): made and opened. */

import { xchacha20poly1305 } from '@noble/ciphers/chacha.js'
import { blake2b } from './blake2b.ts'
import { asBytes, type Bytes, hex, join, len, need, number, refuse, sameSecret, uint32, unlessRefused, utf8 } from './bytes.ts'
import { expand, extract } from './curves.ts'
import { inflate } from './inflate.ts'
import { MOST_FILE, MOST_OBJECT } from './limits.ts'

export const ObjectType = { ringBody: 1, commit: 2, memory: 3, segment: 4, node: 7, card: 8 } as const
export type ObjectType = (typeof ObjectType)[keyof typeof ObjectType]

const HEAD = 28
const TAG = 16
const COMPRESSED = 0x80000000
const MAGIC = utf8('IPM1')

/** The padded size for a size. */
export function pad(size: number): number {
  let bucket = 512
  while (bucket < size && bucket < 8192) bucket *= 2
  if (size <= 8192) return bucket
  const exponent = 31 - Math.clz32(size)
  const unit = 2 ** (exponent - (31 - Math.clz32(exponent)) - 1)
  return Math.ceil(size / unit) * unit
}

export const MOST_PAYLOAD = 1_032_188

/** An epoch key of a vault: its number, its bytes and the derived keys. */
export class EpochKey {
  /** 16 hex digits that name key and number everywhere. */
  readonly id: string
  readonly #prk: Bytes
  readonly #derived = new Map<string, Bytes>()

  constructor(
    readonly epoch: number,
    readonly key: Bytes,
    readonly tag: Bytes
  ) {
    this.#prk = extract(tag, key)
    this.id = hex(expand(this.#prk, join('ipfsmem/v1/ek-id', [0], number(epoch, 4)), 8))
  }

  #part(label: 'enc' | 'nonce', type: ObjectType): Bytes {
    const name = `${label} ${type}`
    let found = this.#derived.get(name)
    if (found === undefined) {
      found = expand(this.#prk, join(`ipfsmem/v1/obj-${label}`, [0], number(this.epoch, 4), [type]), 32)
      this.#derived.set(name, found)
    }
    return found
  }

  #context(type: ObjectType, ctx: string): Bytes {
    return join(MAGIC, [type, 1], number(this.epoch, 4), this.tag, len(16, ctx))
  }

  #nonce(type: ObjectType, aad: Bytes, text: Bytes): Bytes {
    return blake2b(this.#part('nonce', type), 24, len(32, aad), text)
  }

  /** Seal a payload of at most 1,032,188 bytes, uncompressed. Equal payloads give equal bytes. */
  seal(type: ObjectType, ctx: string, payload: Bytes | string): Bytes {
    const data = asBytes(payload)
    need(data.length <= MOST_PAYLOAD, 'limit', 'more than one object holds')
    const text = new Uint8Array(pad(4 + data.length))
    text.set(number(data.length, 4))
    text.set(data, 4)
    const aad = this.#context(type, ctx)
    const nonce = this.#nonce(type, aad, text)
    return join(MAGIC, nonce, xchacha20poly1305(this.#part('enc', type), nonce, aad).encrypt(text))
  }

  /** Open an object of this type and context; the same error for every fault. */
  open(type: ObjectType, ctx: string, object: Bytes): Bytes {
    need(object.length <= MOST_OBJECT && object.length > HEAD + TAG, 'open')
    need(sameSecret(object.subarray(0, 4), MAGIC), 'open')
    const nonce = object.slice(4, HEAD)
    const aad = this.#context(type, ctx)
    const text = this.#decrypted(type, nonce, aad, object.subarray(HEAD))
    need(sameSecret(nonce, this.#nonce(type, aad, text)) && text.length >= 4, 'open')
    const said = uint32(text)
    const size = said >= COMPRESSED ? said - COMPRESSED : said
    need(size <= text.length - 4 && text.length === pad(4 + size), 'open')
    for (let at = 4 + size; at < text.length; at++) need(text[at] === 0, 'open')
    const stored = text.slice(4, 4 + size)
    if (said < COMPRESSED) return stored
    need(type === ObjectType.memory, 'open')
    const payload = inflate(stored, MOST_FILE)
    need(pad(4 + stored.length) < pad(4 + payload.length), 'open')
    return payload
  }

  #decrypted(type: ObjectType, nonce: Bytes, aad: Bytes, sealed: Bytes): Bytes {
    try {
      return xchacha20poly1305(this.#part('enc', type), nonce, aad).decrypt(sealed)
    } catch {
      return refuse('open')
    }
  }
}

/** A sealed object with its key, type and context. */
export type SealedObject = { readonly key: EpochKey; readonly type: ObjectType; readonly ctx: string; readonly object: Bytes }

/** Open it; null if it does not open. */
export const openHere = ({ key, type, ctx, object }: SealedObject): Bytes | null => unlessRefused(() => key.open(type, ctx, object))

/** Return the payload under one of several keys, and that key; null if none opens the object. */
export function openWithAny(keys: Iterable<EpochKey>, type: ObjectType, ctx: string, object: Bytes): [payload: Bytes, key: EpochKey] | null {
  for (const key of keys) {
    const payload = unlessRefused(() => key.open(type, ctx, object))
    if (payload !== null) return [payload, key]
  }
  return null
}
