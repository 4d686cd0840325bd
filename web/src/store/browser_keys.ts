/**
 * The keys of this browser's device: stored wrapped under a key of the wallet, the recovery phrase or a passkey, and used where no script
 * can read them.
 *
 * "Stay unlocked" stores the usable keys too; no script can read them, but they are in the browser's profile on the disk, so the person
 * decides. The ring knows nothing of passkeys: they only wrap these local keys.
 */

import { type Bytes, hex, join, need, sameSecret } from '../core/bytes.ts'
import { boxKeyOf, boxPublic, type BoxKey, expand, extract, type Signer, signerOf, signingPublic } from '../core/curves.ts'
import type { RootKeys } from '../core/wallet.ts'
import { type Device, deviceOf, rowSealOf, type Environment } from '../device/device.ts'
import { MemoryError } from '../device/errors.ts'
import { type Database, isKept } from './idb.ts'

/** The opener of a device: 32 secret bytes, and the name of the record that they wrap. */
export type Opener = { readonly name: string; readonly secret: Bytes }

/** A wallet or recovery phrase, by its derived keys. */
export const openerOfRoot = (root: RootKeys): Opener => ({
  name: `root ${hex(root.admin)}`,
  secret: expand(extract('ipfsmem/web/device', root.boxSecret), 'ipfsmem/web/device/wrap', 32)
})

/** A passkey, by its PRF output. `id`: of the credential. */
export const openerOfPasskey = (id: string, prf: Bytes): Opener => ({
  name: `passkey ${id}`,
  secret: expand(extract('ipfsmem/web/passkey', prf), 'ipfsmem/web/device/wrap', 32)
})

type Usable = {
  readonly label: string
  readonly sign: CryptoKey | null
  readonly signPublic: Bytes
  readonly box: CryptoKey | null
  readonly boxPublic: Bytes
  readonly rows: CryptoKey
}
/** Seeds of the signing key, the box key and the row key, in this order. */
const SEEDS = 96
const NONCE = 12
const PKCS8 = { Ed25519: [0x70], X25519: [0x6e] } as const

/** PKCS#8 of 32 secret bytes: WebCrypto's format of a private key. */
const pkcs8 = (kind: 'Ed25519' | 'X25519', seed: Bytes): Bytes =>
  join([0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65], PKCS8[kind], [0x04, 0x22, 0x04, 0x20], seed)

const source = (data: Bytes): BufferSource => data as BufferSource

async function imported(kind: 'Ed25519' | 'X25519', seed: Bytes): Promise<CryptoKey | null> {
  const uses: KeyUsage[] = kind === 'Ed25519' ? ['sign'] : ['deriveBits']
  return crypto.subtle.importKey('pkcs8', source(pkcs8(kind, seed)), kind, false, uses).catch(() => null)
}

/** Import the keys for use; the caller wipes the seeds. */
async function usable(seeds: Bytes, label: string): Promise<{ keys: Usable; signer: Signer; box: BoxKey }> {
  const [seed, secret, row] = [seeds.slice(0, 32), seeds.slice(32, 64), seeds.slice(64, SEEDS)]
  const [sign, box] = [await imported('Ed25519', seed), await imported('X25519', secret)]
  const rows = await crypto.subtle.importKey('raw', source(row), 'AES-GCM', false, ['encrypt', 'decrypt'])
  const keys = { label, sign, signPublic: signingPublic(seed), box, boxPublic: boxPublic(secret), rows }
  // A browser without these curves uses the bytes, which then live as long as the page.
  return { keys, signer: sign === null ? signerOf(seed) : signerIn(sign, keys.signPublic), box: box === null ? boxKeyOf(secret) : boxIn(box, keys.boxPublic) }
}

const signerIn = (key: CryptoKey, publicKey: Bytes): Signer => ({
  public: publicKey,
  sign: async message => new Uint8Array(await crypto.subtle.sign('Ed25519', key, source(message)))
})

const boxIn = (key: CryptoKey, publicKey: Bytes): BoxKey => ({
  public: publicKey,
  shared: async other => {
    try {
      const theirs = await crypto.subtle.importKey('raw', source(other), 'X25519', false, [])
      return new Uint8Array(await crypto.subtle.deriveBits({ name: 'X25519', public: theirs }, key, 256))
    } catch {
      return null
    }
  }
})

async function wrapKey(opener: Opener): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', source(opener.secret), 'AES-GCM', false, ['encrypt', 'decrypt'])
}

async function wrap(db: Database, opener: Opener, seeds: Bytes, environment: Environment): Promise<void> {
  const iv = environment.chance(NONCE)
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv: source(iv) }, await wrapKey(opener), source(seeds))
  await db.put('keys', join(iv, new Uint8Array(sealed)), opener.name)
}

async function unwrap(db: Database, opener: Opener): Promise<Bytes | null> {
  const kept = (await db.get('keys', opener.name)) as Bytes | undefined
  if (kept === undefined) return null
  const iv = kept.slice(0, NONCE)
  const seeds = await crypto.subtle.decrypt({ name: 'AES-GCM', iv: source(iv) }, await wrapKey(opener), source(kept.slice(NONCE))).catch(() => null)
  need(seeds !== null && seeds.byteLength === SEEDS, 'open', 'what this browser keeps of its keys was changed')
  return new Uint8Array(seeds)
}

const STAYING = 'staying unlocked'
const LABEL = 'label'

/**
 * An opened device. `undo`: for a new one that led to no vault; restores what was here before, such as the keys of a browser that waits
 * to be added.
 */
export type DeviceKeys = { readonly device: Device; readonly undo: (() => Promise<void>) | null }

/** Return the device that stays unlocked here; null if none does. */
export async function unlockedDevice(db: Database, environment: Environment): Promise<Device | null> {
  const kept = (await db.get('keys', STAYING)) as Usable | undefined
  if (kept === undefined || kept.sign === null || kept.box === null) return null
  return deviceOf(signerIn(kept.sign, kept.signPublic), boxIn(kept.box, kept.boxPublic), rowSealOf(kept.rows, environment.chance), kept.label)
}

/** Tell whether a device was made here before. */
export const hasDevice = async (db: Database): Promise<boolean> => (await db.get('keys', LABEL)) !== undefined

/** The names of the openers of the device here: `root <key>`, `passkey <id>`. */
export const openersOf = async (db: Database): Promise<string[]> => (await db.getAllKeys('keys')).filter(name => /^(root|passkey) /.test(name))

/**
 * Open this browser's device with a wallet, recovery phrase or passkey; make one if there is none, or only one that found no vault and that
 * these keys do not open. `label`: of a new one.
 */
export async function openDevice(db: Database, opener: Opener, how: { label: string; stay: boolean; environment: Environment }): Promise<DeviceKeys> {
  const { environment, stay } = how
  let seeds = await unwrap(db, opener)
  let undo: DeviceKeys['undo'] = null
  if (seeds === null) {
    if ((await hasDevice(db)) && (await isKept(db))) {
      throw new MemoryError('locked', 'these keys do not open the vault in this browser', 'Use the wallet, words or passkey that opened it here before.')
    }
    const before = new Map<string, unknown>()
    for (const name of await db.getAllKeys('keys')) before.set(name, await db.get('keys', name))
    await forgetDevice(db)
    undo = async () => {
      await forgetDevice(db)
      for (const [name, value] of before) await db.put('keys', value, name)
    }
    seeds = environment.chance(SEEDS)
    await wrap(db, opener, seeds, environment)
    await db.put('keys', how.label, LABEL)
  }
  const label = ((await db.get('keys', LABEL)) as string | undefined) ?? how.label
  const { keys, signer, box } = await usable(seeds, label)
  seeds.fill(0)
  if (stay) await stayUnlocked(db, keys)
  return { device: deviceOf(signer, box, rowSealOf(keys.rows, environment.chance), label), undo }
}

async function stayUnlocked(db: Database, keys: Usable): Promise<void> {
  if (keys.sign === null || keys.box === null) {
    throw new MemoryError('usage', 'this browser cannot keep keys where no script reads them', 'Unlock it each time.')
  }
  await db.put('keys', keys, STAYING)
}

/** Add another opener to this device, such as a passkey. `by`: a current one. */
export async function addOpener(db: Database, by: Opener, added: Opener, environment: Environment): Promise<void> {
  const seeds = await unwrap(db, by)
  if (seeds === null) throw new MemoryError('locked', 'these keys do not open the vault in this browser', 'Use the wallet, words or passkey that opened it here before.')
  await wrap(db, added, seeds, environment)
  const again = await unwrap(db, added)
  need(again !== null && sameSecret(seeds, again), 'open', 'the wrapped keys cannot be decrypted')
  seeds.fill(0)
}

/** Delete the keys of a device that is not a member of a vault. */
export async function forgetDevice(db: Database): Promise<void> {
  for (const name of await db.getAllKeys('keys')) await db.delete('keys', name)
}

/**
 * Lock the device from the next opening on. Refused if nothing could unlock it again, as in a browser that was added without the wallet.
 */
export async function lock(db: Database): Promise<void> {
  if ((await openersOf(db)).length === 0 && (await hasDevice(db))) {
    throw new MemoryError('usage', 'not locked: this browser was added without a wallet, a recovery phrase or a passkey, so none of them could unlock its data', 'To remove the vault from this browser, sync, then delete the data of this page in its settings.')
  }
  await db.delete('keys', STAYING)
}
