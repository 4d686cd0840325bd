/** A key ring: `keyring.json` read, opened and joined (FORMAT.md 4). */

import { byCodePoints, type Bytes, compare, fields, fromBase64url, fromHex, hex, isObject, need, parseCanonical, same, uint32, unlessRefused } from './bytes.ts'
import { Authority } from './authority.ts'
import { openBox } from './curves.ts'
import { keptStatements, ofKind } from './drop_rules.ts'
import { EpochKey, ObjectType } from './sealed.ts'
import { checkSigned, type Epoch, formedList, type Statement } from './statements.ts'
import { vaultTag } from './wallet.ts'

const MOST_RING = 1 << 20

/** The file, read and its statements checked; the body of a sealed vault is still closed. */
export type KeyringFile = {
  readonly tag: Bytes
  readonly plain: boolean
  readonly open: readonly Statement[]
  /** Of a plain vault the statements of the body, else its sealed bytes. */
  readonly body: readonly Statement[] | Bytes
}

export async function parseKeyring(data: Bytes): Promise<KeyringFile> {
  need(data.length <= MOST_RING, 'limit', 'a ring of more than 1 MiB')
  const file = fields(parseCanonical(data), ['body', 'open', 'v', 'vault'])
  need(file.v === 1, 'format', 'another version')
  const tag = fromHex(file.vault, 16)
  const open = formedList(file.open, true)
  const births = ofKind(open, 'genesis')
  const first = births[0]
  need(first !== undefined && births.every(one => one.by === first.by), 'format', 'no genesis, or of two vaults')
  const plain = same(tag, vaultTag(fromHex(first.by), true))
  need(plain || same(tag, vaultTag(fromHex(first.by), false)), 'format', 'a tag that is not of the first root')
  await checkSigned(open, tag)
  need(plain === (typeof file.body !== 'string'), 'format', 'a body of the other form than the tag says')
  if (!plain) return { tag, plain, open, body: fromBase64url(file.body) }
  need(open.every(one => one.t !== 'epoch'), 'format', 'epochs in a plain vault')
  const body = fields(file.body, ['eks', 'st'])
  need(Array.isArray(body.eks) && body.eks.length === 0, 'format', 'epoch keys in a plain vault')
  const inner = formedList(body.st, false)
  await checkSigned(inner, tag)
  return { tag, plain, open, body: inner }
}

/** The keys that slots of these epochs give to whoever has this box secret. */
function fromSlots(epochs: readonly Epoch[], tag: Bytes, boxSecret: Bytes): EpochKey[] {
  const found: EpochKey[] = []
  for (const epoch of epochs) {
    for (const slot of epoch.slots) {
      const text = openBox(fromBase64url(slot, 104), boxSecret)
      if (text === null || text.length !== 56 || hex(text.subarray(0, 4)) !== '49504d4b') continue
      if (!same(text.subarray(4, 20), tag) || uint32(text, 20) !== epoch.epoch) continue
      const key = new EpochKey(epoch.epoch, text.slice(24), tag)
      if (key.id === epoch.ek) found.push(key)
    }
  }
  return found
}

const newestFirst = (keys: Iterable<EpochKey>): EpochKey[] => [...keys].sort((a, b) => -compare([a.epoch, a.id], [b.epoch, b.id]))

/** The keys of a body, in their order. */
function keysOfBody(list: unknown, tag: Bytes): EpochKey[] {
  need(Array.isArray(list), 'format', 'no list of keys')
  const keys = list.map((pair: unknown) => {
    need(Array.isArray(pair) && pair.length === 2, 'format', 'no epoch key')
    const [number, key] = pair as [unknown, unknown]
    need(Number.isSafeInteger(number) && (number as number) >= 1 && (number as number) < 2 ** 32, 'format', 'no number of an epoch')
    return new EpochKey(number as number, fromBase64url(key, 32), tag)
  })
  const order = (one: EpochKey): [number, string, string] => [one.epoch, one.id, hex(one.key)]
  keys.forEach((one, i) => need(i === 0 || compare(order(keys[i - 1] as EpochKey), order(one)) < 0, 'format', 'keys out of order'))
  return keys
}

/** The ring of a file with all keys that open: those of its slots, of its body, and `known` ones. Where none opens the body it is shut. */
export async function openKeyring(file: KeyringFile, boxSecret: Bytes | null, known: readonly EpochKey[] = []): Promise<Ring> {
  if (!(file.body instanceof Uint8Array)) return new Ring(file.tag, true, [...file.open, ...file.body], [])
  const given = boxSecret === null ? [] : fromSlots(ofKind(file.open, 'epoch'), file.tag, boxSecret)
  for (const key of newestFirst([...given, ...known])) {
    const sealed = file.body
    const raw = unlessRefused(() => key.open(ObjectType.ringBody, '', sealed))
    if (raw === null) continue
    const value = parseCanonical(raw)
    need(isObject(value), 'format', 'not the body of a ring')
    const body = fields(value, ['eks', 'st'])
    const others = keysOfBody(body.eks, file.tag)
    const inner = formedList(body.st, false)
    await checkSigned(inner, file.tag)
    return new Ring(file.tag, false, [...file.open, ...inner], [...others, key, ...given])
  }
  return new Ring(file.tag, false, file.open, given, true)
}

/** A set of statements of one vault with its epoch keys, and what they say. */
export class Ring {
  /** Those that count, by their hashes. */
  readonly statements: readonly Statement[]
  readonly said: Authority
  /** Epoch keys, the newest first: all of them, and those that still count. */
  readonly readable: readonly EpochKey[]
  readonly keys: readonly EpochKey[]

  /** `all` were checked before. `shut`: its body did not open. */
  constructor(
    readonly tag: Bytes,
    readonly plain: boolean,
    all: readonly Statement[],
    keys: readonly EpochKey[],
    readonly shut = false
  ) {
    const union = new Map<string, Statement>()
    for (const one of all) {
      const here = union.get(one.hash)
      if (here === undefined || byCodePoints(one.signature, here.signature) < 0) union.set(one.hash, one)
    }
    this.statements = keptStatements([...union.values()])
    this.said = new Authority(this.statements)
    this.readable = newestFirst(new Map(keys.map(key => [`${key.id} ${hex(key.key)}`, key])).values())
    this.keys = this.readable.filter(key => this.said.names.has(key.id))
  }

  join(other: Ring): Ring {
    need(same(this.tag, other.tag) && this.plain === other.plain, 'vault', 'a ring of another vault')
    return new Ring(this.tag, this.plain, [...this.statements, ...other.statements], [...this.readable, ...other.readable])
  }

  /** The same for two rings that say the same. */
  get mark(): string {
    return [...this.statements.map(one => one.hash + one.signature), ...this.readable.map(key => key.id)].sort().join()
  }
}
