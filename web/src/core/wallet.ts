/** Keys of a vault from a wallet's signature, 64 secret bytes or a recovery phrase (FORMAT.md 2). */

import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { entropyToMnemonic, mnemonicToEntropy } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english.js'
import { type Bytes, fromHex, hex, join, len, need, number, same, sha256, utf8 } from './bytes.ts'
import { boxPublic, expand, extract, signingPublic } from './curves.ts'

// --- 2.1, 2.2: the message and its gates ---

const MOST_KEY_NUMBER = 2_147_483_647
const ADDRESS = /^[0-9a-f]{40}$/

/** The text that a wallet signs. `address`: 40 lower-case hex digits. */
export function keyRequest(address: string, vault: string, keyNumber: number): string {
  need(ADDRESS.test(address), 'format', 'not an address')
  need(/^[a-z0-9][a-z0-9-]{0,31}$/.test(vault) && !vault.endsWith('\n'), 'format', 'not the label of a vault')
  need(Number.isSafeInteger(keyNumber) && keyNumber >= 1 && keyNumber <= MOST_KEY_NUMBER, 'format', 'not a key number')
  return `ipfsmem memory key request, version 1

Signing this text creates the secret keys of an encrypted agent memory.
It is not a login and not a payment. It costs nothing.
Anyone who obtains this signature can read and change that memory.
Sign it only inside an ipfsmem program that you started yourself.
If a website that you do not run asks for it, refuse.

Account: 0x${address}
Vault: ${vault}
Key number: ${keyNumber}`
}

/** The hash that `personal_sign` signs (EIP-191). */
export function signingHash(text: string): Bytes {
  const data = utf8(text)
  return keccak_256(join(`\x19Ethereum Signed Message:\n${data.length}`, data))
}

const N = secp256k1.Point.Fn.ORDER

/** Decode a wallet's signature: 65 bytes of hex. */
export function signatureBytes(text: string): Bytes {
  const digits = text.trim().toLowerCase().replace(/^0x/, '')
  need(/^[0-9a-f]{130}$/.test(digits), 'signature', 'not a signature of 65 bytes: a contract wallet cannot make these keys')
  return fromHex(digits)
}

/** Recover the signer of `text`; refused for an invalid signature. Returns the address and r | s, s in its lower half. */
export function recoverSigner(text: string, signature: Bytes): { address: string; rs: Bytes } {
  need(signature.length === 65, 'signature', 'not a signature of 65 bytes: a contract wallet cannot make these keys')
  const v = signature[64] as number
  need([0, 1, 27, 28].includes(v), 'signature', 'not a signature of a plain wallet')
  const r = BigInt(`0x${hex(signature.subarray(0, 32))}`)
  let s = BigInt(`0x${hex(signature.subarray(32, 64))}`)
  let parity = v % 27
  need(r > 0n && r < N && s > 0n && s < N, 'signature', 'numbers that no signature has')
  if (s > N / 2n) {
    s = N - s
    parity ^= 1
  }
  let point: Bytes
  try {
    point = new secp256k1.Signature(r, s, parity).recoverPublicKey(signingHash(text)).toBytes(false)
  } catch {
    need(false, 'signature', 'a signature that no key makes')
  }
  return { address: hex(keccak_256(point.subarray(1)).subarray(12)), rs: join(signature.subarray(0, 32), number(s, 32)) }
}

/** Return r | s of a signature of this account over this text. */
export function acceptedSignature(address: string, text: string, signature: Bytes): Bytes {
  const signed = recoverSigner(text, signature)
  need(signed.address === address, 'signature', `signed by 0x${signed.address}, not by 0x${address}`)
  return signed.rs
}

/** The same for two signatures in sequence: wallets with non-deterministic signatures cannot derive keys. */
export function signedTwice(address: string, text: string, first: Bytes, second: Bytes): Bytes {
  const rs = acceptedSignature(address, text, first)
  need(
    same(first, second) || same(rs, acceptedSignature(address, text, second)),
    'signature',
    'this wallet signs one text in different ways; use another one, or make a memory without a wallet'
  )
  return rs
}

// --- 2.3: derivation ---

/** The keys derived from a wallet, a secret or a recovery phrase. */
export type RootKeys = {
  readonly adminSeed: Bytes
  readonly admin: Bytes
  readonly headSeed: Bytes
  readonly head: Bytes
  readonly boxSecret: Bytes
  readonly box: Bytes
  /** Eight bytes in hex that tell a right passphrase from a wrong one; null for a recovery phrase. */
  readonly check: string | null
}

function rootKeys(derive: (label: string) => Bytes, hasCheck: boolean): RootKeys {
  const [adminSeed, headSeed, boxSecret] = [derive('admin'), derive('head'), derive('box')]
  return {
    adminSeed,
    admin: signingPublic(adminSeed),
    headSeed,
    head: signingPublic(headSeed),
    boxSecret,
    box: boxPublic(boxSecret),
    check: hasCheck ? hex(derive('check').subarray(0, 8)) : null
  }
}

/** Stretch a passphrase; takes seconds. `progress` receives the finished share, 0 to 1. */
async function stretched(passphrase: string, address: Bytes, vault: string, progress?: (share: number) => void): Promise<Bytes> {
  need(passphrase !== '' && passphrase.isWellFormed(), 'passphrase', 'not a passphrase')
  const salt = sha256(join('ipfsmem/v1/pp', address, vault)).subarray(0, 16)
  // Loaded only when a passphrase is used.
  const { argon2idAsync } = await import('@noble/hashes/argon2.js')
  const how = { t: 3, m: 65_536, p: 1, dkLen: 32, ...(progress ? { onProgress: progress } : {}) }
  return argon2idAsync(utf8(passphrase.normalize('NFKC')), salt, how)
}

export type KeySource = {
  /** r | s of the wallet, or 64 random bytes. */
  readonly secret: Bytes
  /** Of the wallet, 40 hex digits; zeros without one. */
  readonly address: string
  readonly vault: string
  readonly keyNumber: number
  readonly passphrase?: string | null
  readonly progress?: (share: number) => void
}

export const NO_ADDRESS = '0'.repeat(40)

export async function keysOfSecret(source: KeySource): Promise<RootKeys> {
  const address = fromHex(source.address, 20)
  const passphrase = source.passphrase ?? null
  const added = passphrase === null ? new Uint8Array() : await stretched(passphrase, address, source.vault, source.progress)
  const prk = extract('ipfsmem/v1/wallet-root', join(source.secret, added))
  const tail = join([0], address, len(16, source.vault), number(source.keyNumber, 4))
  return rootKeys(label => expand(prk, join('ipfsmem/v1/', label, tail), 32), true)
}

/** The 32 bytes encoded by 24 recovery words. */
export function secretOfWords(words: string): Bytes {
  const typed = words.toLowerCase().split(/[\s\x1c-\x1f\x85]+/).filter(Boolean)
  need(typed.length === 24, 'words', `recovery phrase: 24 words required (got ${typed.length})`)
  const wrong = typed.findIndex(word => !wordlist.includes(word))
  need(wrong < 0, 'words', `word ${wrong + 1} is not in the list`)
  try {
    return mnemonicToEntropy(typed.join(' '), wordlist)
  } catch {
    return need(false, 'words', 'these words do not belong together: is one mistyped, or two changed over?') as never
  }
}

export const wordsOfSecret = (secret: Bytes): string => entropyToMnemonic(secret, wordlist)

export function keysOfWords(words: string): RootKeys {
  const prk = extract('ipfsmem/v1/recovery', secretOfWords(words))
  return rootKeys(label => expand(prk, join('ipfsmem/v1/', label), 32), false)
}

/** A recovery phrase for a vault to be created, and its keys. The caller has the person write it down first: it is stored nowhere. */
export type RecoveryWords = { readonly words: string; readonly keys: RootKeys }

export function newRecoveryWords(chance: (size: number) => Bytes): RecoveryWords {
  const words = wordsOfSecret(chance(32))
  return { words, keys: keysOfWords(words) }
}
