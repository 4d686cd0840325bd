/**
 * A wallet's key file (Web3 secret storage, version 3, as `ipfsmem init --new-wallet` and most wallets write it), opened in the page for
 * one signature.
 */

import { secp256k1 } from '@noble/curves/secp256k1.js'
import { scryptAsync } from '@noble/hashes/scrypt.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { type Bytes, fromHex, hex, isObject, join, Refused, sameSecret, utf8 } from '../core/bytes.ts'
import { acceptedSignature, keyRequest, keysOfSecret, type RootKeys, signingHash } from '../core/wallet.ts'
import { MemoryError } from '../device/errors.ts'
import type { WalletAsk } from './ethereum.ts'

const MOST_FILE = 64 << 10
const MOST_SCRYPT = 1 << 30
const MOST_P = 16
const MOST_ROUNDS = 10_000_000

const lower = (value: unknown): unknown =>
  isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name.toLowerCase(), lower(one)])) : value

const noKeyFile = (why: string): MemoryError => new MemoryError('usage', `unreadable key file: ${why}`, 'It is the file that ipfsmem init --new-wallet made, or an export of a wallet.')

/**
 * Return the keys of the vault for which a key file's account signs. `file`: its text. `MemoryError` for an invalid file or a wrong
 * passphrase.
 */
export async function keysOfKeyFile(file: string, passphrase: string, how: WalletAsk): Promise<RootKeys> {
  const secret = await opened(file, passphrase, how.progress)
  const address = hex(keccak_256(secp256k1.getPublicKey(secret, false).subarray(1)).subarray(12))
  const text = keyRequest(address, how.vault, how.keyNumber ?? 1)
  const [parity, ...rs] = secp256k1.sign(signingHash(text), secret, { prehash: false, format: 'recovered' })
  secret.fill(0)
  const signed = acceptedSignature(address, text, join(rs, [27 + (parity as number)]))
  return keysOfSecret({ secret: signed, address, vault: how.vault, keyNumber: how.keyNumber ?? 1, passphrase: how.passphrase ?? null })
}

/** Decrypt the 32 secret bytes. */
async function opened(file: string, passphrase: string, progress: ((share: number) => void) | undefined): Promise<Bytes> {
  if (file.length > MOST_FILE) throw noKeyFile('it is too long')
  if (passphrase === '') throw new MemoryError('usage', 'the passphrase is empty', "Type the key file's own.")
  let parts: { iv: Bytes; ciphertext: Bytes; mac: Bytes; derive: () => Promise<Bytes> }
  try {
    parts = partsOf(lower(JSON.parse(file)), passphrase, progress)
  } catch (error) {
    if (error instanceof SyntaxError) throw noKeyFile('it is not JSON')
    if (error instanceof Refused) throw noKeyFile(error.message || 'one of its values has an unexpected type')
    throw error
  }
  const { iv, ciphertext, mac, derive } = parts
  const derived = await derive()
  if (!sameSecret(keccak_256(join(derived.subarray(16, 32), ciphertext)), mac)) throw new MemoryError('usage', 'the passphrase of this key file is wrong', "It is the key file's own, not that of a device.")
  const key = await crypto.subtle.importKey('raw', derived.slice(0, 16) as BufferSource, 'AES-CTR', false, ['decrypt'])
  const secret = new Uint8Array(await crypto.subtle.decrypt({ name: 'AES-CTR', counter: iv as BufferSource, length: 128 }, key, ciphertext as BufferSource))
  if (!secp256k1.utils.isValidSecretKey(secret)) throw noKeyFile('it does not contain the key of a wallet')
  return secret
}

function partsOf(value: unknown, passphrase: string, progress: ((share: number) => void) | undefined) {
  const { crypto: inside, version } = value as { crypto?: Record<string, unknown>; version?: unknown }
  if (version !== 3 || !isObject(inside)) throw noKeyFile('it is not of version 3')
  const { cipher, ciphertext, mac, kdf } = inside
  const { iv } = inside['cipherparams'] as { iv?: unknown }
  const how = inside['kdfparams'] as { salt?: unknown; n?: unknown; r?: unknown; p?: unknown; c?: unknown; prf?: unknown; dklen?: unknown }
  if (cipher !== 'aes-128-ctr') throw noKeyFile('its cipher is another than aes-128-ctr')
  if (how.dklen !== 32) throw noKeyFile('its derived key has not 32 bytes')
  const salt = fromHex(how.salt)
  const derive = async (): Promise<Bytes> => {
    if (kdf === 'scrypt') return scryptAsync(utf8(passphrase), salt, { N: how.n as number, r: how.r as number, p: how.p as number, dkLen: 32, ...(progress ? { onProgress: progress } : {}) })
    const typed = await crypto.subtle.importKey('raw', utf8(passphrase) as BufferSource, 'PBKDF2', false, ['deriveBits'])
    return new Uint8Array(await crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-256', salt: salt as BufferSource, iterations: how.c as number }, typed, 256))
  }
  const isWhole = (one: unknown, most: number): one is number => Number.isSafeInteger(one) && (one as number) >= 1 && (one as number) <= most
  const isScrypt = kdf === 'scrypt' && isWhole(how.n, MOST_SCRYPT) && isWhole(how.r, MOST_SCRYPT) && isWhole(how.p, MOST_P) && how.n > 1 && (how.n & (how.n - 1)) === 0 && how.n * how.r * 128 <= MOST_SCRYPT
  const isPbkdf2 = kdf === 'pbkdf2' && isWhole(how.c, MOST_ROUNDS) && how.prf === 'hmac-sha256'
  if (!isScrypt && !isPbkdf2) throw noKeyFile('how its passphrase is stretched is not known here')
  return { iv: fromHex(iv, 16), ciphertext: fromHex(ciphertext, 32), mac: fromHex(mac, 32), derive }
}
