/** This device: its keys, which may be where no script can read them, and the sealing of its storage. */

import type { Offloading } from './offloading.ts'
import { type Bytes, join, need } from '../core/bytes.ts'
import { type BoxKey, boxKeyOf, idOf, type Signer, signerOf } from '../core/curves.ts'

/** Time and randomness, passed in so that tests control them, and other threads for work, if any. */
export type Environment = {
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number
  readonly chance: (size: number) => Bytes
  readonly offloading?: Offloading
}

export const defaultEnvironment: Environment = {
  now: () => Date.now(),
  chance: size => crypto.getRandomValues(new Uint8Array(size))
}

/** Seals rows that only this device reads. */
export type RowSeal = {
  readonly seal: (row: Bytes) => Promise<Bytes>
  /** Refused as `open` if it was changed. */
  readonly open: (sealed: Bytes) => Promise<Bytes>
}

export type Device = {
  readonly id: string
  readonly label: string
  readonly signer: Signer
  readonly box: BoxKey
  readonly rows: RowSeal
}

export const deviceOf = (signer: Signer, box: BoxKey, rows: RowSeal, label: string): Device => ({ id: idOf(signer.public), label, signer, box, rows })

const NONCE = 12

/** Seal rows under an AES-GCM key, which need not be extractable. */
export const rowSealOf = (key: CryptoKey, chance: Environment['chance']): RowSeal => ({
  async seal(row) {
    const iv = chance(NONCE)
    return join(iv, new Uint8Array(await crypto.subtle.encrypt({ name: 'AES-GCM', iv: iv as BufferSource }, key, row as BufferSource)))
  },
  async open(sealed) {
    const iv = sealed.slice(0, NONCE)
    const row = await crypto.subtle.decrypt({ name: 'AES-GCM', iv: iv as BufferSource }, key, sealed.slice(NONCE) as BufferSource).catch(() => null)
    need(row !== null, 'open', 'the data of this device cannot be decrypted: it was changed, or belongs to another device')
    return new Uint8Array(row)
  }
})

/** Return a device with raw keys that end with its program. */
export async function volatileDevice(environment: Environment, label: string): Promise<Device> {
  const key = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt'])
  return deviceOf(signerOf(environment.chance(32)), boxKeyOf(environment.chance(32)), rowSealOf(key, environment.chance), label)
}

