/** A key ring: `keyring.json` read, opened and joined (FORMAT.md 4). */

import {
  base64url,
  byCodePoints,
  type Bytes,
  canonical,
  compare,
  fields,
  fromBase64url,
  fromHex,
  hex,
  isObject,
  join,
  need,
  number,
  parseCanonical,
  same,
  sha256,
  uint32,
  unlessRefused,
  utf8
} from './bytes.ts'
import { Authority } from './authority.ts'
import { type BoxKey, openBoxWith } from './curves.ts'
import { keptStatements, ofKind } from './drop_rules.ts'
import { EpochKey, ObjectType, pad } from './sealed.ts'
import { checkSigned, type Epoch, formed, formedList, isOpen, type Statement } from './statements.ts'

const MOST_RING = 1 << 20
/** Bytes for what no root signed, and for keys that only it names. */
const MOST_OTHERS = MOST_RING / 2
/** Ids with keys, and pairs of who is out by admins alone. */
const MOST_NAMES = 1536
/** `IPMK`, in hex. */
const SLOT_MAGIC = '49504d4b'

/** What names the vault that has this first root, sealed or plain. */
export const vaultTag = (admin: Bytes, plain: boolean): Bytes =>
  sha256(join(plain ? 'ipfsmem/v1/plain-vault' : 'ipfsmem/v1/vault', [0], admin)).subarray(0, 16)

/** The file, read and its statements checked; the body of a sealed vault is still closed. */
export type KeyringFile = {
  readonly tag: Bytes
  readonly plain: boolean
  readonly open: readonly Statement[]
  /** Sealed, as base64url, or of a plain vault the body itself; what it contains is checked where it is opened. */
  readonly body: string | Record<string, unknown>
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
  const { body } = file
  need(plain ? isObject(body) : typeof body === 'string', 'format', 'a body of the other form than the tag says')
  need(!plain || open.every(one => one.t !== 'epoch'), 'format', 'epochs in a plain vault')
  return { tag, plain, open, body: body as KeyringFile['body'] }
}

/** Slots of what no root signed that are tried, of one file (FORMAT.md 8). */
const MOST_OTHER_SLOTS = 512

/** The epochs of an open part in the order in which their slots are tried: those of roots, then so many slots of others, the newest first. */
function inOrderOfTrial(open: readonly Statement[]): { epoch: Epoch; slots: readonly string[] }[] {
  const roots = new Set(ofKind(open, 'genesis').flatMap(one => one.roots))
  const epochs = ofKind(open, 'epoch').sort((a, b) => -compare([a.epoch, a.ek], [b.epoch, b.ek]))
  let left = MOST_OTHER_SLOTS
  const others = epochs.filter(one => !roots.has(one.by)).map(epoch => {
    const slots = epoch.slots.slice(0, Math.max(0, left))
    left -= slots.length
    return { epoch, slots }
  })
  return [...epochs.filter(one => roots.has(one.by)).map(epoch => ({ epoch, slots: epoch.slots })), ...others]
}

/** The keys that slots of an open part give to whoever has one of these box keys. */
async function fromSlots(open: readonly Statement[], tag: Bytes, boxes: readonly BoxKey[], ofRoots: boolean): Promise<EpochKey[]> {
  const found = new Map<string, EpochKey>()
  const roots = new Set(ofKind(open, 'genesis').flatMap(one => one.roots))
  for (const { epoch, slots } of inOrderOfTrial(open).filter(one => roots.has(one.epoch.by) === ofRoots)) {
    for (const slot of slots) {
      if (found.has(`${epoch.epoch} ${epoch.ek}`)) break
      for (const box of boxes) {
        const text = await openBoxWith(fromBase64url(slot, 104), box)
        if (text === null || text.length !== 56 || hex(text.subarray(0, 4)) !== SLOT_MAGIC) continue
        if (!same(text.subarray(4, 20), tag) || uint32(text, 20) !== epoch.epoch) continue
        const key = new EpochKey(epoch.epoch, text.slice(24), tag)
        if (key.id === epoch.ek) found.set(`${epoch.epoch} ${epoch.ek}`, key)
      }
    }
  }
  return [...found.values()]
}

/** The keys that slots give which no root signed: to read this very root with. */
export const keysOfOthers = (file: KeyringFile, boxes: readonly BoxKey[]): Promise<EpochKey[]> => fromSlots(file.open, file.tag, boxes, false)

/** What stands in a slot: whoever has the box key of it reads the epoch key. */
export const slotText = (key: EpochKey): Bytes => join(fromHex(SLOT_MAGIC), key.tag, number(key.epoch, 4), key.key)

const total = <T>(all: readonly T[], size: (one: T) => number): number => all.reduce((sum, one) => sum + size(one), 0)
const inBase64 = (size: number): number => Math.ceil((size * 4) / 3)
const envelopeSize = (one: Statement): number => inBase64(one.payload.length) + 104

const newestFirst = (keys: Iterable<EpochKey>): EpochKey[] => [...keys].sort((a, b) => -compare([a.epoch, a.id], [b.epoch, b.id]))

/** The keys of a body, in their order. */
function keysOfBody(list: unknown, tag: Bytes): EpochKey[] {
  need(Array.isArray(list), 'format', 'no list of keys')
  const keys = list.map((pair: unknown) => {
    need(Array.isArray(pair) && pair.length === 2, 'format', 'no epoch key')
    const [epoch, key] = pair as [unknown, unknown]
    need(Number.isSafeInteger(epoch) && (epoch as number) >= 1 && (epoch as number) < 2 ** 32, 'format', 'no number of an epoch')
    return new EpochKey(epoch as number, fromBase64url(key, 32), tag)
  })
  keys.forEach((one, i) => need(i === 0 || compare(keyOrder(keys[i - 1] as EpochKey), keyOrder(one)) < 0, 'format', 'keys out of order'))
  return keys
}

const keyOrder = (one: EpochKey): [number, string, string] => [one.epoch, one.id, hex(one.key)]
const pairsOfKeys = (keys: readonly EpochKey[]): [number, string][] =>
  [...keys].sort((a, b) => compare(keyOrder(a), keyOrder(b))).map(one => [one.epoch, base64url(one.key)])
const envelopes = (all: readonly Statement[]): { k: string; s: string }[] => all.map(one => ({ k: base64url(one.payload), s: one.signature }))

/** The ring of a file with all keys that open: those of its slots, of its body, and `known` ones. Where none opens the body it is shut. */
export async function openKeyring(file: KeyringFile, boxes: readonly BoxKey[], known: readonly EpochKey[] = []): Promise<Ring> {
  if (typeof file.body !== 'string') {
    const { keys, inner } = await readBody(file.body, file.tag)
    need(keys.length === 0, 'format', 'epoch keys in a plain vault')
    return new Ring(file.tag, true, [...file.open, ...inner], [])
  }
  const sealed = fromBase64url(file.body)
  const given = await fromSlots(file.open, file.tag, boxes, true)
  const named = new Set(ofKind(file.open, 'epoch').map(one => `${one.epoch} ${one.ek}`))
  const opened = await openWith(file, sealed, newestFirst([...given, ...known.filter(one => named.has(`${one.epoch} ${one.id}`))]), given)
  if (opened !== null) return opened
  // What others signed is tried only where nothing else opens the body; the ring gives of these keys the one that does.
  const more = await keysOfOthers(file, boxes)
  const late = await openWith(file, sealed, newestFirst(more), given, more)
  return late ?? new Ring(file.tag, false, file.open, [...given, ...more], true, [...given, ...more])
}

/** The ring of a file whose body the first of these keys opens that can, with the keys that a roots' slots give (`given`); null where none does. `more`: of other slots, to read this root with. */
async function openWith(file: KeyringFile, sealed: Bytes, keys: readonly EpochKey[], given: readonly EpochKey[], more: readonly EpochKey[] = []): Promise<Ring | null> {
  for (const key of keys) {
    const raw = unlessRefused(() => key.open(ObjectType.ringBody, '', sealed))
    if (raw === null) continue
    const { keys: others, inner } = await readBody(parseCanonical(raw), file.tag)
    return new Ring(file.tag, false, [...file.open, ...inner], [...others, key, ...given], false, [key, ...given, ...more])
  }
  return null
}

/** The keys and the statements of a body. */
async function readBody(value: unknown, tag: Bytes): Promise<{ keys: EpochKey[]; inner: Statement[] }> {
  need(isObject(value), 'format', 'not the body of a ring')
  const body = fields(value, ['eks', 'st'])
  const keys = keysOfBody(body.eks, tag)
  const inner = formedList(body.st, false)
  await checkSigned(inner, tag)
  return { keys, inner }
}

/** A set of statements of one vault with its epoch keys, and what they say. */
export class Ring {
  /** Those that count, by their hashes. */
  readonly statements: readonly Statement[]
  readonly said: Authority
  /** Epoch keys, the newest first: all of them, and those that still count. */
  readonly readable: readonly EpochKey[]
  readonly keys: readonly EpochKey[]

  /** `all` were checked before. `shut`: its body did not open. `slots`: of a file the keys that its own slots give, and the one that opened it. */
  constructor(
    readonly tag: Bytes,
    readonly plain: boolean,
    /** What of it was read: a join reduces the union, never one part alone. */
    readonly all: readonly Statement[],
    keys: readonly EpochKey[],
    readonly shut = false,
    readonly slots: readonly EpochKey[] = []
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
    return new Ring(this.tag, this.plain, [...this.statements, ...other.all], [...this.readable, ...other.readable], this.shut && other.shut)
  }

  /** The same for two rings that say the same. */
  get mark(): string {
    return [...this.statements.map(one => one.hash + one.signature), ...this.readable.map(key => key.id)].sort().join()
  }

  /** What is taken of each limit (FORMAT.md 4). */
  room(): { size: number; others: number; claims: number; ids: number } {
    const { roots, putOut, keysOf } = this.said
    const isOfRoot = (one: Statement): boolean => roots.includes(one.by)
    const [open, hidden] = [this.statements.filter(isOpen), this.statements.filter(one => !isOpen(one))]
    const ofRoots = new Set(ofKind(this.statements, 'epoch').filter(isOfRoot).flatMap(one => [one.ek, ...one.old]))
    const [bytes, keyBytes] = [total(open, envelopeSize) + 90, (keys: readonly EpochKey[]) => total(keys, one => 50 + `${one.epoch}`.length)]
    const inner = total(hidden, envelopeSize)
    const inFile = (one: Statement): number => (isOpen(one) || this.plain ? envelopeSize(one) : inBase64(envelopeSize(one)))
    return {
      size: bytes + (this.plain ? inner : inBase64(pad(4 + inner + keyBytes(this.keys) + 20) + 44)),
      others: total(this.statements.filter(one => !isOfRoot(one)), inFile) + inBase64(keyBytes(this.keys.filter(one => !ofRoots.has(one.id)))),
      claims: new Set(putOut.map(String)).size,
      ids: keysOf.size
    }
  }

  /** This ring, refused where it passes a limit: whoever joins keeps the old one then. */
  #within(): this {
    const { size, others, claims, ids } = this.room()
    need(size <= MOST_RING && others <= MOST_OTHERS && Math.max(claims, ids) <= MOST_NAMES, 'limit', 'the key ring would pass its limits')
    return this
  }

  /**
   * Joined with the ring of a file, and with which keys that root is read: those that either ring names, those that were here, and
   * those of its own slots. Other keys in a body count nowhere.
   */
  joinedWith(other: Ring): { joined: Ring; reading: Ring } {
    const both = this.join(other)
    const mine = new Set(this.readable.map(key => `${key.id} ${hex(key.key)}`))
    const stays = (key: EpochKey): boolean => both.said.names.has(key.id) || other.said.names.has(key.id) || mine.has(`${key.id} ${hex(key.key)}`)
    const joined = new Ring(this.tag, this.plain, both.statements, both.readable.filter(stays), both.shut).#within()
    return { joined, reading: joined.with([], other.slots) }
  }

  /** This ring with a key more to read with. */
  withKey(key: EpochKey | undefined): Ring {
    return key === undefined || this.readable.includes(key) ? this : this.with([], [key])
  }

  /** More statements, which were checked, and more epoch keys. */
  with(statements: readonly Statement[], keys: readonly EpochKey[] = []): Ring {
    const grown = new Ring(this.tag, this.plain, [...this.statements, ...statements], [...this.readable, ...keys], this.shut)
    return statements.length > 0 ? grown.#within() : grown
  }

  /** The key that seals now; null where none may, or it is not here. */
  get sealing(): EpochKey | null {
    const { seals } = this.said
    return this.keys.find(one => seals !== null && one.epoch === seals[0] && one.id === seals[1]) ?? null
  }

  /** keyring.json: the same bytes on every device that holds the same set. Refused (`member`) where no key may seal, or that key is not here. */
  file(): Bytes {
    return utf8(canonical({ body: this.#body(), open: envelopes(this.statements.filter(isOpen)), v: 1, vault: hex(this.tag) }))
  }

  #body(): unknown {
    const st = envelopes(this.statements.filter(one => !isOpen(one)))
    if (this.plain) return { eks: [], st }
    const key = this.sealing
    need(key !== null, 'member', 'no key may seal now, or this device does not have it: an admin must unlock')
    const eks = pairsOfKeys(this.keys.filter(one => one !== key))
    return base64url(key.seal(ObjectType.ringBody, '', canonical({ eks, st })))
  }

  /** All of it, with the keys in the clear: for what this device keeps sealed, never to be published. */
  kept(): unknown {
    return { eks: pairsOfKeys(this.readable), plain: this.plain, shut: this.shut, st: envelopes(this.statements), vault: hex(this.tag) }
  }

  /** What `kept` gave, which this device sealed: signatures are not checked again. */
  static ofKept(kept: unknown): Ring {
    const it = fields(kept, ['eks', 'plain', 'shut', 'st', 'vault'])
    const tag = fromHex(it.vault, 16)
    return new Ring(tag, it.plain === true, (it.st as unknown[]).map(formed), keysOfBody(it.eks, tag), it.shut === true)
  }
}
