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
import { keptStatements, ofKind } from './retention_rules.ts'
import { EpochKey, ObjectType, pad } from './sealed.ts'
import { checkSigned, type Epoch, formed, formedList, isOpen, type Statement } from './statements.ts'

const MOST_RING = 1 << 20
/** Maximum bytes of statements not signed by a root, and of keys that only they name. */
const MOST_OTHERS = MOST_RING / 2
/** Maximum ids with keys, and pairs removed only by admins. */
const MOST_NAMES = 1536
/** `IPMK`, in hex. */
const SLOT_MAGIC = '49504d4b'

/** The tag of the vault with this first root, sealed or plain. */
export const vaultTag = (admin: Bytes, plain: boolean): Bytes =>
  sha256(join(plain ? 'ipfsmem/v1/plain-vault' : 'ipfsmem/v1/vault', [0], admin)).subarray(0, 16)

/** The file, with its statements checked; the body of a sealed vault is not opened yet. */
export type KeyringFile = {
  readonly tag: Bytes
  readonly plain: boolean
  readonly open: readonly Statement[]
  /** Sealed, as base64url, or the body itself in a plain vault; its content is checked when it is opened. */
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

/** Maximum number of slots not signed by a root that are tried, of one file (FORMAT.md 8). */
const MOST_OTHER_SLOTS = 512

/**
 * The epochs of an open part in the order in which their slots are tried: those of roots, then a limited number of others' slots, newest
 * first.
 */
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

/** Return the keys in the slots of an open part that these box keys open. */
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

/** Return the keys in slots not signed by a root: for reading this root only. */
export const keysOfOthers = (file: KeyringFile, boxes: readonly BoxKey[]): Promise<EpochKey[]> => fromSlots(file.open, file.tag, boxes, false)

/** The content of a slot: the holder of its box key reads the epoch key. */
export const slotText = (key: EpochKey): Bytes => join(fromHex(SLOT_MAGIC), key.tag, number(key.epoch, 4), key.key)

const total = <T>(all: readonly T[], size: (one: T) => number): number => all.reduce((sum, one) => sum + size(one), 0)
const inBase64 = (size: number): number => Math.ceil((size * 4) / 3)
const envelopeSize = (one: Statement): number => inBase64(one.payload.length) + 104

const newestFirst = (keys: Iterable<EpochKey>): EpochKey[] => [...keys].sort((a, b) => -compare([a.epoch, a.id], [b.epoch, b.id]))

/** Parse the keys of a body, in order. */
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

/** Open a ring with all available keys: those of its slots, of its body, and `known` ones. If none opens the body, it is shut. */
export async function openKeyring(file: KeyringFile, boxes: readonly BoxKey[], known: readonly EpochKey[] = []): Promise<Ring> {
  if (typeof file.body !== 'string') {
    const { keys, inner } = await readBody(file.body, file.tag)
    need(keys.length === 0, 'format', 'epoch keys in a plain vault')
    return new Ring(file.tag, true, [...file.open, ...inner], [])
  }
  const sealed = fromBase64url(file.body)
  const rootKeys = await fromSlots(file.open, file.tag, boxes, true)
  const named = new Set(ofKind(file.open, 'epoch').map(one => `${one.epoch} ${one.ek}`))
  const opened = await openWith(file, sealed, newestFirst([...rootKeys, ...known.filter(one => named.has(`${one.epoch} ${one.id}`))]), rootKeys)
  if (opened !== null) return opened
  // Others' slots are tried only if nothing else opens the body; of these keys the ring has only the one that does.
  const more = await keysOfOthers(file, boxes)
  const late = await openWith(file, sealed, newestFirst(more), rootKeys, more)
  return late ?? new Ring(file.tag, false, file.open, [...rootKeys, ...more], true, [...rootKeys, ...more])
}

/**
 * Open a ring's body with the first of these keys that can, with the keys in roots' slots (`rootKeys`); null if none can. `more`: keys of
 * other slots, for reading this root.
 */
async function openWith(file: KeyringFile, sealed: Bytes, keys: readonly EpochKey[], rootKeys: readonly EpochKey[], more: readonly EpochKey[] = []): Promise<Ring | null> {
  for (const key of keys) {
    const raw = unlessRefused(() => key.open(ObjectType.ringBody, '', sealed))
    if (raw === null) continue
    const { keys: others, inner } = await readBody(parseCanonical(raw), file.tag)
    return new Ring(file.tag, false, [...file.open, ...inner], [...others, key, ...rootKeys], false, [key, ...rootKeys, ...more])
  }
  return null
}

/** Parse the keys and the statements of a body. */
async function readBody(value: unknown, tag: Bytes): Promise<{ keys: EpochKey[]; inner: Statement[] }> {
  need(isObject(value), 'format', 'not the body of a ring')
  const body = fields(value, ['eks', 'st'])
  const keys = keysOfBody(body.eks, tag)
  const inner = formedList(body.st, false)
  await checkSigned(inner, tag)
  return { keys, inner }
}

/** The statements of one vault with its epoch keys, and their meaning. */
export class Ring {
  /** The valid ones, by hash. */
  readonly statements: readonly Statement[]
  readonly said: Authority
  /** Epoch keys, newest first: all of them, and the valid ones. */
  readonly readable: readonly EpochKey[]
  readonly keys: readonly EpochKey[]

  /** `all` were checked before. `shut`: its body did not open. `slots`: of a file the keys in its own slots, and the one that opened it. */
  constructor(
    readonly tag: Bytes,
    readonly plain: boolean,
    /** All statements read: a join reduces the union, never one part alone. */
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

  /** Equal for two rings with the same statements. */
  get mark(): string {
    return [...this.statements.map(one => one.hash + one.signature), ...this.readable.map(key => key.id)].sort().join()
  }

  /** The usage of each limit (FORMAT.md 4). */
  room(): { size: number; others: number; claims: number; ids: number } {
    const { roots, revokedBy, keysOf } = this.said
    const isOfRoot = (one: Statement): boolean => roots.includes(one.by)
    const [open, hidden] = [this.statements.filter(isOpen), this.statements.filter(one => !isOpen(one))]
    const ofRoots = new Set(ofKind(this.statements, 'epoch').filter(isOfRoot).flatMap(one => [one.ek, ...one.old]))
    const [bytes, keyBytes] = [total(open, envelopeSize) + 90, (keys: readonly EpochKey[]) => total(keys, one => 50 + `${one.epoch}`.length)]
    const inner = total(hidden, envelopeSize)
    const inFile = (one: Statement): number => (isOpen(one) || this.plain ? envelopeSize(one) : inBase64(envelopeSize(one)))
    return {
      size: bytes + (this.plain ? inner : inBase64(pad(4 + inner + keyBytes(this.keys) + 20) + 44)),
      others: total(this.statements.filter(one => !isOfRoot(one)), inFile) + inBase64(keyBytes(this.keys.filter(one => !ofRoots.has(one.id)))),
      claims: new Set(revokedBy.map(String)).size,
      ids: keysOf.size
    }
  }

  /** Return this ring, refused if it exceeds a limit: then a join keeps the old one. */
  #within(): this {
    const { size, others, claims, ids } = this.room()
    need(size <= MOST_RING && others <= MOST_OTHERS && Math.max(claims, ids) <= MOST_NAMES, 'limit', 'the key ring would pass its limits')
    return this
  }

  /**
   * Join with the ring of a file; also return the ring for reading that root: with the keys named by either ring, those here, and those of
   * its own slots. Other keys in a body are ignored.
   */
  joinedWith(other: Ring): { joined: Ring; reading: Ring } {
    const both = this.join(other)
    const mine = new Set(this.readable.map(key => `${key.id} ${hex(key.key)}`))
    const stays = (key: EpochKey): boolean => both.said.names.has(key.id) || other.said.names.has(key.id) || mine.has(`${key.id} ${hex(key.key)}`)
    const joined = new Ring(this.tag, this.plain, both.statements, both.readable.filter(stays), both.shut).#within()
    return { joined, reading: joined.with([], other.slots) }
  }

  /** Return this ring with one more key for reading. */
  withKey(key: EpochKey | undefined): Ring {
    return key === undefined || this.readable.includes(key) ? this : this.with([], [key])
  }

  /** Add checked statements and epoch keys. */
  with(statements: readonly Statement[], keys: readonly EpochKey[] = []): Ring {
    const grown = new Ring(this.tag, this.plain, [...this.statements, ...statements], [...this.readable, ...keys], this.shut)
    return statements.length > 0 ? grown.#within() : grown
  }

  /** The key that seals now; null if none may, or it is not here. */
  get sealing(): EpochKey | null {
    const { seals } = this.said
    return this.keys.find(one => seals !== null && one.epoch === seals[0] && one.id === seals[1]) ?? null
  }

  /**
   * keyring.json: the same bytes on every device with the same statements. Refused (`member`) if no key may seal, or that key is not here.
   */
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

  /** All of it, with the keys in the clear: for this device's sealed storage, never to be published. */
  kept(): unknown {
    return { eks: pairsOfKeys(this.readable), plain: this.plain, shut: this.shut, st: envelopes(this.statements), vault: hex(this.tag) }
  }

  /** Parse the result of `kept`, which this device sealed: signatures are not checked again. */
  static ofKept(kept: unknown): Ring {
    const it = fields(kept, ['eks', 'plain', 'shut', 'st', 'vault'])
    const tag = fromHex(it.vault, 16)
    return new Ring(tag, it.plain === true, (it.st as unknown[]).map(formed), keysOfBody(it.eks, tag), it.shut === true)
  }
}
