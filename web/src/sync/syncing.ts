/**
 * One sync: what others published is found, verified and joined, then what this device has is published (FORMAT.md 7).
 *
 * It reads as its steps: find, join, administer (with an unlocked root only), publish. A provider that fails costs time and no text.
 */

import { base64url, byCodePoints, type Bytes, compare, fromBase64url, fromHex, hex, Refused, sha256, unlessRefused } from '../core/bytes.ts'
import { cidOfHash, ipnsName, RAW } from '../core/cid.ts'
import { clockAfterSeeing, nextClock } from '../core/clock.ts'
import { boxKeyOf, type Signer, signerOf } from '../core/curves.ts'
import { type Enrollee, enrol, enrolleeOf, giveKey } from '../core/enrolling.ts'
import { makeRecord, newestRecord, readRecord, targetOf } from '../core/ipns.ts'
import { joinStates } from '../core/join.ts'
import { buildRoot, makeCommit, type MadeCommit, objectsOf, signedPair } from '../core/publishing.ts'
import type { Ring } from '../core/ring.ts'
import { readName, type Seen, type State } from '../core/state.ts'
import { buildTree } from '../core/tree.ts'
import { keyringFolder } from '../core/unixfs.ts'
import { type Head, pinName, type Shelf, VaultReader, type VaultReading, type Verdict } from '../core/vault.ts'
import { isOwnWord } from '../core/views.ts'
import type { RootKeys } from '../core/wallet.ts'
import { MemoryError } from '../device/errors.ts'
import { type Kept, type KnownRoot, recordsText, type Replica } from '../device/replica.ts'
import { authorOf } from '../device/writing.ts'
import { fetchBlocks, fetchTrees, treeOf } from './fetching.ts'
import { type Block, type Keeper, type NameServer, type Provider, ProviderError } from './provider.ts'

const ANCHOR_DAYS = 10 * 365
const DEVICE_DAYS = 365
const DAY_MS = 86_400_000
const TTL_NS = 300_000_000_000n
const MOST_JOINED = 1024
const MOST_PREV = 256
const MOST_LISTED = 128
/** Versions that are known, and those of them whose blocks stay here: the newest. */
const MOST_LOG = 256
const KEPT_ROOTS = 30
const NOT_ANNOUNCED = 'other devices do not know this device yet: it is announced again at the next sync'

/** Something that a person should know of a sync. */
export type Notice = { readonly kind: string; readonly text: string }

export type SyncReport = {
  /** The root that this device's name leads to; null where nothing was published. */
  readonly root: string | null
  /** Whether anything came from others, and whether a keeper took anything of ours. */
  readonly joined: boolean
  readonly published: boolean
  readonly verdicts: Readonly<Record<string, Verdict>>
  readonly notices: readonly Notice[]
  readonly sentBlocks: number
}

/** Where a memory is found: its vault, and the public key of its anchor, both in hex. */
export type Pointer = { readonly vault: string; readonly anchor: string }

export type SyncHow = {
  /** For a device that was let in by its request. */
  readonly pointer?: Pointer | null
  /** A version that a person named, for where no name leads to one. */
  readonly begin?: string
  /** A device to let in. */
  readonly enrollee?: Enrollee
  /** An unlocked root: the wallet's keys, or those of recovery words. */
  readonly root?: RootKeys | null
  readonly progress?: (step: string) => void
}

class Run {
  readonly notices: Notice[] = []
  readonly names = new Map<string, Bytes>()
  /** What each server of names shows. */
  readonly shown = new Map<string, Bytes | null>()
  readonly brought = new Set<string>()
  readonly silent = new Set<string>()

  constructor(
    readonly replica: Replica,
    readonly providers: readonly Provider[],
    readonly how: SyncHow
  ) {
    for (const [name, text] of Object.entries(replica.kept.records)) this.names.set(name, fromBase64url(text))
  }

  say(kind: string, text: string): void {
    this.notices.push({ kind, text })
  }

  /** A provider did not do its part: said, and the sync goes on with the others. */
  failed(error: unknown): void {
    if (!(error instanceof ProviderError)) throw error
    if (!this.silent.has(error.provider)) this.say('provider', error.message)
    this.silent.add(error.provider)
  }

  get nameServers(): NameServer[] {
    return this.providers.flatMap(one => one.names ?? [])
  }

  get keepers(): Keeper[] {
    return this.providers.flatMap(one => one.keeper ?? [])
  }

  /** Take a record when it is signed and greater than the one known. */
  async offer(name: string, bytes: Bytes): Promise<void> {
    const read = async (one: Bytes) => {
      try {
        return await readRecord(name, one)
      } catch (error) {
        if (error instanceof Refused) return null
        throw error
      }
    }
    const given = await read(bytes)
    if (given === null) {
      this.say('bad-record', 'a provider showed a newest version that its device did not sign; that was not used')
      return
    }
    const held = this.names.get(name)
    const known = held === undefined ? null : await read(held)
    this.names.set(name, known === null ? bytes : newestRecord([given, known]).bytes)
  }

  /** Ask for names at every server that keeps them; throws when none answers. */
  async ask(names: readonly string[]): Promise<void> {
    const servers = this.nameServers
    const answers = await Promise.all(
      servers.flatMap(server =>
        names.map(async name => {
          try {
            const record = await server.record(name)
            this.shown.set(`${server.name} ${name}`, record)
            if (record !== null) await this.offer(name, record)
            return true
          } catch (error) {
            this.failed(error)
            return false
          }
        })
      )
    )
    if (servers.length > 0 && names.length > 0 && !answers.includes(true)) {
      throw new MemoryError('provider', 'no provider that keeps names answered', this.notices.map(one => one.text).join('; '))
    }
  }

  async fetch(roots: readonly string[]): Promise<readonly string[]> {
    const readers = this.providers.flatMap(one => one.reader ?? [])
    const found = await fetchTrees(roots, this.replica.blocks, readers, this.replica.whole)
    for (const error of found.silent) this.failed(error)
    for (const cid of found.brought) this.brought.add(cid)
    return found.missingNodes
  }

  /** Ask by their hashes for what a state names and nobody has given yet (FORMAT.md 6). */
  async askForMissing(state: State): Promise<void> {
    const { blocks } = this.replica
    const missing = [...objectsOf(state).keys()].map(objectCid).filter(cid => blocks.peek(cid) === null)
    if (missing.length === 0) return
    const silent = new Map<string, ProviderError>()
    const readers = this.providers.flatMap(one => one.reader ?? [])
    const found = await fetchBlocks(missing, readers, silent)
    for (const error of silent.values()) this.failed(error)
    for (const [cid, data] of found) {
      blocks.add(cid, data)
      this.brought.add(cid)
    }
    const left = missing.length - found.size
    if (left > 0) this.say('missing', `no provider gives ${left} ${left === 1 ? 'part' : 'parts'} of this memory now; each sync asks again`)
  }
}

const objectCid = (hash: string): string => cidOfHash(RAW, fromHex(hash)).text

const targetRoot = (reader: VaultReader, name: string): { cid: string | null; name: string | null } => {
  const record = reader.record(name)
  return (record === null ? null : unlessRefused(() => targetOf(record))) ?? { cid: null, name: null }
}

type Found = { readonly reader: VaultReader; readonly ring: Ring }

/** Names followed, and roots brought here, until nothing new is learned; the ring joined on the way. */
async function find(run: Run): Promise<Found> {
  const { replica, how } = run
  const root = how.root ?? null
  const boxes = [replica.device.box, ...(root === null ? [] : [boxKeyOf(root.boxSecret)])]
  const pins: Record<string, readonly string[]> = {}
  const shelf: Shelf = { boxes, plain: false, blocks: replica.blocks, names: run.names, pins, begin: how.begin ?? null }
  const asked = new Set<string>()
  let ring = replica.ring
  let isListed = false
  for (;;) {
    const reader = new VaultReader(shelf)
    await reader.takeRecords()
    const pointer = how.pointer ?? null
    const start = [
      ...(root === null ? [] : [ipnsName(root.head)]),
      ...(pointer === null ? [] : [ipnsName(fromHex(pointer.anchor, 32))]),
      ...(ring === null ? [] : [...ring.said.anchors(), ...[...ring.said.members.values()].map(one => one.sign)].map(key => ipnsName(fromHex(key))))
    ]
    const names = new Set(start)
    for (const name of names) {
      const to = targetRoot(reader, name)
      if (to.name !== null) names.add(to.name)
    }
    const news = [...names].filter(name => !asked.has(name))
    if (news.length > 0) {
      for (const name of news) asked.add(name)
      await run.ask(news)
      continue
    }
    const roots = [...names].flatMap(name => targetRoot(reader, name).cid ?? [])
    await run.fetch([...new Set([...roots, ...Object.values(pins).flat()])])
    if (ring === null) {
      if (root === null && pointer !== null) {
        ring = await reader.ringOf(fromHex(pointer.vault, 16), fromHex(pointer.anchor, 32))
        continue
      }
      if (root === null) throw new MemoryError('none', 'this device does not belong to a memory yet', 'Open it with the wallet or the recovery words.')
      if (roots.length === 0 && !isListed) {
        isListed = true
        await list(run, pins, pinName(root.head))
        continue
      }
      ring = await reader.firstRing(root)
    }
    const before = ring.mark
    ring = await reader.grow(ring)
    if (ring.mark !== before) continue
    if (ring.shut) throw new MemoryError('member', 'this device was not let in yet', 'Show its request to a device that has the wallet, then try again.')
    const heads = [...ring.said.members.values()].filter(one => reader.follow(fromHex(one.sign)) !== null)
    const first = [...ring.said.members.values()].find(one => one.sign === ring?.said.first)
    if (heads.length === 0 && first?.anchor && pins[pinName(fromHex(first.anchor))] === undefined) {
      await list(run, pins, pinName(fromHex(first.anchor)))
      continue
    }
    return { reader, ring }
  }
}

/** What lists of pins show under a name, the newest first. */
async function list(run: Run, pins: Record<string, readonly string[]>, name: string): Promise<void> {
  const found: string[] = []
  for (const provider of run.providers) {
    try {
      found.push(...((await provider.pins?.(name)) ?? []))
    } catch (error) {
      run.failed(error)
    }
  }
  pins[name] = [...new Set(found)].slice(0, MOST_LISTED)
}

/** That nobody published with this device's key what this device did not make: then it was restored or copied. */
function checkStillMe(run: Run, found: Found, reading: VaultReading): void {
  const { device, kept } = run.replica
  const { heads, verdicts } = reading
  const own = found.reader.follow(device.signer.public)
  if (own !== null && own !== kept.commit?.root && verdicts[own] === 'damaged') {
    throw new MemoryError('provider', "what this device's own name leads to cannot be read now, so nothing was published", 'Try again later.')
  }
  for (const head of heads) {
    const pair = head.seen.get(device.id)
    if (pair !== undefined && !kept.pairs.some(([n, r]) => n === pair.n && r === pair.r)) {
      throw new MemoryError(
        'copied',
        'what this device keeps was put back or copied: others know of writes of it that it does not know',
        'Remove this device here and open the memory anew; export first what was written here since.'
      )
    }
  }
  const { asked } = found.ring.said
  if (asked.has(found.ring.said.families.get(device.id) ?? device.id)) {
    throw new MemoryError('member', 'this device was removed from the memory', 'Open the memory anew with the wallet or the recovery words.')
  }
}

/** The ring with what an unlocked root says: this device in it, and keys for all who lack them. */
async function administer(run: Run, ring: Ring): Promise<Ring> {
  const { replica, how } = run
  const { root } = how
  if (!root) return ring
  const { device, world, kept } = replica
  const signer = signerOf(root.adminSeed)
  let grown = await giveKey(ring, signer, world.chance)
  if (!grown.said.members.has(device.id)) {
    const itself = await enrolleeOf(device.signer, device.box.public, device.label, ring.tag)
    const since = nextClock(kept.clock, world.now())
    grown = await enrol(grown, signer, itself, { role: 'writer', since, chance: world.chance })
    run.say('enrolled', `this device belongs to the memory now, as ${device.label}`)
  }
  if (how.enrollee !== undefined) {
    grown = await enrol(grown, signer, how.enrollee, { role: 'writer', since: nextClock(kept.clock, world.now()), chance: world.chance })
    run.say('let-in', `${how.enrollee.label} belongs to the memory now`)
  }
  return grown
}

/** Sync once. One at a time; writes go on meanwhile. */
export function sync(replica: Replica, providers: readonly Provider[], how: SyncHow = {}): Promise<SyncReport> {
  return replica.keeping.exclusively('sync', async () => {
    await replica.keeping.exclusively('write', () => replica.refresh())
    const run = new Run(replica, providers, how)
    how.progress?.('looking')
    const found = await find(run)
    how.progress?.('reading')
    const past = { state: replica.state, joined: new Set(replica.kept.joined) }
    const reading = await found.reader.joinAll(found.ring, past)
    const news = reading.heads.filter(one => !past.joined.has(one.hash))
    checkStillMe(run, found, reading)
    tell(run, reading)
    await run.askForMissing(reading.state)
    const ring = await administer(run, reading.ring)
    const made = await replica.keeping.exclusively('write', () => keep(run, found, reading, ring))
    how.progress?.('publishing')
    const { sent, taken } = made === null ? { sent: 0, taken: false } : await publish(run, made, ring)
    return {
      root: made?.root ?? null,
      joined: news.some(one => one.dev !== replica.device.id),
      published: taken,
      verdicts: reading.verdicts,
      notices: run.notices,
      sentBlocks: sent
    }
  })
}

function tell(run: Run, reading: VaultReading): void {
  for (const verdict of Object.values(reading.verdicts)) {
    if (verdict === 'damaged') run.say('damaged', 'a newest version of another device cannot be read whole now; newer texts may stand in it')
    else if (verdict === 'held') run.say('held', 'two copies of one device wrote at once; what one of them wrote is not shown yet')
    else if (verdict.startsWith('refused')) run.say('refused', 'a version was refused, for not all in it was signed by who may')
  }
}

type Announcing = NonNullable<Kept['announcing']>
/** What is to be published. `moved`: names that lead to it. */
type Made = { readonly root: string; readonly isNew: boolean; readonly announcing: Announcing | null; readonly moved: readonly string[] }

/** The joined state and what is to be published, made durable before anything leaves. Null where this device may not publish. */
async function keep(run: Run, found: Found, reading: VaultReading, ring: Ring): Promise<Made | null> {
  const { replica } = run
  await replica.refresh()
  const { device, world, kept } = replica
  // What was written here while others' texts were read is in one of both, and what it replaced goes.
  const joined = joinStates(replica.state, reading.state, found.reader.judgement(ring))
  const latest = [...joined.entries.values()].flatMap(entry => Object.values(entry).map(value => value.h)).reduce((a, b) => (a > b ? a : b), kept.clock)
  const clock = clockAfterSeeing(kept.clock, latest, world.now())
  const known = [...new Set([...kept.joined, ...reading.heads.filter(one => one.lacking.length === 0).map(one => one.hash)])]
  const first = [...ring.said.members.values()].find(one => one.sign === ring.said.first)
  const change: Mutable = {
    ring: ring.kept(),
    entries: differences(replica, joined),
    seen: Object.fromEntries([...joined.seen].filter(([, pair]) => pair.r !== '')),
    clock,
    joined: known.slice(-MOST_JOINED),
    anchor: first?.anchor ?? kept.anchor,
    others: othersIn(replica, joined)
  }
  const blocks: Block[] = [...run.brought].map((cid): Block => [cid, replica.blocks.peek(cid) as Bytes])
  const moved: string[] = []
  const made = await makeVersion(run, reading, ring, joined, change, blocks)
  change.log = logWith(kept.log, reading, made, device.id, world.now())
  let announcing: Announcing | null = null
  const { root } = run.how
  if (made !== null) {
    await point(run, device.signer, `/ipfs/${made.root}`, DEVICE_DAYS)
    moved.push(ipnsName(device.signer.public))
    if (root) {
      const put = (cid: string, data: Bytes): void => {
        replica.blocks.add(cid, data)
        blocks.push([cid, data])
      }
      announcing = { root: keyringFolder(ring.file(), put).cid, head: hex(root.head) }
      replica.whole.add(announcing.root)
      await point(run, signerOf(root.headSeed), `/ipfs/${announcing.root}`, ANCHOR_DAYS)
      change.announcing = announcing
    } else if (kept.announcing !== null) {
      const head = fromHex(kept.announcing.head)
      if (found.reader.follow(head) === kept.announcing.root) announcing = kept.announcing
      else if (await isKnownAt(run, found, head)) change.announcing = null
      // Another device led the anchor elsewhere since, and only the root may lead it on.
      else run.say('not-announced', 'other devices do not know this device yet: sync once more with the wallet or the recovery words')
    }
    if (announcing !== null) moved.push(ipnsName(fromHex(announcing.head)))
  }
  await replica.change({ ...change, records: recordsText(run.names) }, blocks)
  replica.forgetViews()
  const live = liveBlocks(run, joined, made?.root ?? null, announcing?.root ?? null, found)
  await replica.settle([], live === null ? [] : [...replica.blocks.cids()].filter(cid => !live.has(cid)))
  return made === null ? null : { ...made, announcing, moved }
}

/** The known versions with those that were joined or made now, the oldest first. */
function logWith(log: readonly KnownRoot[], reading: VaultReading, made: Version | null, device: string, at: number): KnownRoot[] {
  const known = new Set(log.map(one => one.root))
  const joined = reading.heads.map(({ root, dev, c, state, ek }): KnownRoot => ({ root, dev, c, at, state, ek }))
  const own = made === null ? [] : [{ root: made.root, dev: device, c: made.c, at, state: made.state, ek: made.ek }]
  const news = [...joined, ...own].filter(one => !known.has(one.root) && known.add(one.root))
  return [...log, ...news].slice(-MOST_LOG)
}

/** Whether the ring that an anchor leads to knows this device. */
async function isKnownAt(run: Run, { reader, ring }: Found, head: Bytes): Promise<boolean> {
  try {
    const theirs = await reader.ringOf(ring.tag, head)
    return !theirs.shut && theirs.said.members.has(run.replica.device.id)
  } catch (error) {
    if (error instanceof Refused) return false
    throw error
  }
}

type Mutable = { -readonly [K in keyof Kept]?: Kept[K] }

/** Entries that are other than here; empty ones go. */
function differences(replica: Replica, state: State): Kept['entries'] {
  const out: Record<string, Kept['entries'][string]> = {}
  for (const [name, entry] of state.entries) {
    const held = replica.entries.get(name)
    if (held === undefined || JSON.stringify(sortedEntry(held)) !== JSON.stringify(sortedEntry(entry))) out[name] = entry
  }
  for (const name of replica.entries.keys()) if (!state.entries.has(name)) out[name] = {}
  return out
}

const sortedEntry = (entry: Kept['entries'][string]): unknown =>
  Object.entries(entry)
    .sort(([a], [b]) => byCodePoints(a, b))
    .map(([dot, value]) => [dot, value.body, value.h, value.kind, value.loc ?? null, value.base ?? null, value.of ?? null, value.s ?? null, value.b])

/** Bodies of others' texts in a state: one of them that is written again here stays theirs. */
function othersIn(replica: Replica, state: State): Record<string, string> {
  const isOwn = isOwnWord(replica.isMine)
  const out: Record<string, string> = {}
  for (const [name, entry] of state.entries) {
    if (readName(name).kind !== 'm') continue
    for (const [dot, value] of Object.entries(entry)) if (value.body !== null && !isOwn(dot, value)) out[value.body] = authorOf(dot, value, replica.isMine)
  }
  return out
}

/** Blocks of the newest roots, of the ring that anchors lead to, and of all texts; null where nothing is known to be whole. */
function liveBlocks(run: Run, state: State, root: string | null, anchorRoot: string | null, found: Found): Set<string> | null {
  if (root === null) return null
  const { replica } = run
  const live = new Set<string>()
  const anchors = found.ring.said.anchors().flatMap(key => found.reader.follow(fromHex(key)) ?? [])
  const past = replica.kept.log.slice(-KEPT_ROOTS).map(one => one.root)
  for (const one of [root, ...(anchorRoot === null ? [] : [anchorRoot]), ...anchors, ...past.reverse()]) for (const cid of treeOf(one, replica.blocks, live)) live.add(cid)
  for (const hash of objectsOf(state).keys()) live.add(objectCid(hash))
  return live
}

/** A version of this device: its root, the number of its commit, and what opens its state. */
type Version = { readonly root: string; readonly isNew: boolean; readonly c: number; readonly state: string; readonly ek: string }

/** The commit and the root to publish: that of a head which says the same, or one of our own. */
async function makeVersion(run: Run, reading: VaultReading, ring: Ring, joined: State, change: Mutable, blocks: Block[]): Promise<Version | null> {
  const { replica } = run
  const { device, world, kept } = replica
  const member = ring.said.members.get(device.id)
  if (member === undefined || member.role === 'reader') {
    run.say('not-a-writer', 'this device may read this memory and not write it: nothing was published')
    return null
  }
  const key = ring.sealing
  if (key === null) {
    run.say('cannot-publish', 'nothing was published: no key may seal now, a device with the wallet must sync once')
    return null
  }
  const put = (cid: string, data: Bytes): void => {
    replica.blocks.add(cid, data)
    blocks.push([cid, data])
  }
  const state = { entries: joined.entries, seen: new Map(joined.seen) }
  const { n } = kept
  if (n > 0 && state.seen.get(device.id)?.r === '') {
    const r = hex(world.chance(8))
    state.seen.set(device.id, await signedPair(device.signer, device.id, n, r, ring.tag))
    change.pairs = [...kept.pairs, [n, r]]
    change.seen = Object.fromEntries(state.seen)
  }
  const keyring = ring.file()
  const { digest } = buildTree(state.entries)
  const ringHash = hex(sha256(keyring))
  const saysTheSame = (one: Head): boolean => one.state === digest && one.ek === key.id && one.ringHash === ringHash && sameSeen(one, state.seen)
  const equal = reading.heads.filter(saysTheSame).sort((a, b) => -compare([a.hash, a.root], [b.hash, b.root]))
  // A root that was made where an object was missing does not name it, and is no longer the one to end on.
  const here = [...objectsOf(state).keys()].map(objectCid).filter(cid => replica.blocks.peek(cid) !== null)
  const namesAll = (root: string): boolean => {
    const holes = new Set<string>()
    const tree = treeOf(root, replica.blocks, new Set(), holes)
    return holes.size === 0 && here.every(cid => tree.has(cid))
  }
  const whole = equal.find(one => one.hash === equal[0]?.hash && namesAll(one.root))
  const what = { state: digest, ek: key.id }
  if (whole !== undefined) return { ...what, root: whole.root, isNew: false, c: whole.c }
  const commit: MadeCommit =
    equal[0] !== undefined
      ? equal[0].signed
      : await makeCommit(device.signer, ring, keyring, {
          c: nextNumber(replica, reading),
          dev: device.id,
          h: change.clock as string,
          prev: newest(reading.heads, kept.commit?.hash),
          state,
          digest
        })
  const root = buildRoot(ring, keyring, commit, state, replica.blocks, put)
  replica.whole.add(root)
  if (equal[0] !== undefined) return { ...what, root, isNew: false, c: equal[0].c }
  const c = nextNumber(replica, reading)
  change.commit = { c, hash: commit.hash, json: base64url(commit.json), signature: base64url(commit.signature), root }
  change.joined = [...(change.joined ?? []), commit.hash]
  return { ...what, root, isNew: true, c }
}

const sameSeen = (head: Head, seen: ReadonlyMap<string, Seen>): boolean =>
  head.lacking.length === 0 && head.seen.size === seen.size && [...seen].every(([dev, pair]) => head.seen.get(dev)?.n === pair.n && head.seen.get(dev)?.r === pair.r)

const nextNumber = (replica: Replica, reading: VaultReading): number =>
  1 + Math.max(replica.kept.commit?.c ?? 0, ...reading.heads.filter(one => one.dev === replica.device.id).map(one => one.c))

const newest = (heads: readonly Head[], own: string | undefined): string[] => {
  const all = [...heads].sort((a, b) => -compare([a.h, a.hash], [b.h, b.hash])).map(one => one.hash)
  return [...new Set([...(own === undefined ? [] : [own]), ...all])].slice(0, MOST_PREV)
}

/** Have a name of ours lead to a value, where it does not, or half of its record's life is spent. */
async function point(run: Run, signer: Signer, value: string, days: number): Promise<void> {
  const name = ipnsName(signer.public)
  const now = run.replica.world.now()
  const held = run.names.get(name)
  const known = held === undefined ? null : await readRecord(name, held)
  const half = BigInt(now + (days * DAY_MS) / 2) * 1_000_000n
  if (known !== null && known.value === value && known.validUntil > half) return
  const validUntil = `${new Date(now + days * DAY_MS).toISOString().slice(0, -1)}000000Z`
  run.names.set(name, await makeRecord(signer, { value, sequence: known === null ? 1n : known.sequence + 1n, validUntil, ttlNs: TTL_NS }))
}

/** Blocks to every keeper, then names. -> how many blocks were sent, and whether anything of ours was taken. */
async function publish(run: Run, made: Made, ring: Ring): Promise<{ sent: number; taken: boolean }> {
  const { replica } = run
  const { announcing } = made
  const anchor = replica.kept.anchor === '' ? null : fromHex(replica.kept.anchor)
  const name = anchor === null ? pinName(fromHex(ring.said.first as string)) : pinName(anchor)
  const has = new Set<string>()
  let sent = 0
  for (const keeper of run.keepers) {
    try {
      if (announcing !== null) sent += await place(run, keeper, announcing.root, name, false)
      sent += await place(run, keeper, made.root, name, true)
      has.add(keeper.name)
    } catch (error) {
      run.failed(error)
    }
  }
  if (run.keepers.length === 0 || has.size === 0) {
    run.say('not-sent', 'nothing could be sent: what was written waits on this device, or goes out as a file')
    if (announcing !== null) run.say('not-announced', NOT_ANNOUNCED)
    return { sent, taken: false }
  }
  const records = made.moved.flatMap(one => {
    const record = run.names.get(one)
    return record === undefined ? [] : [[one, record] as const]
  })
  const anchorName = announcing === null ? null : ipnsName(fromHex(announcing.head))
  let isAnnounced = announcing === null
  for (const server of run.nameServers) {
    // No name is put where what it leads to was not taken; one that keeps no blocks itself is another matter.
    if (server.putRecord === undefined || (run.providers.some(one => one.keeper?.name === server.name) && !has.has(server.name))) continue
    for (const [one, record] of records) {
      try {
        const there = run.shown.get(`${server.name} ${one}`)
        if (there == null || hex(there) !== hex(record)) await server.putRecord(one, record)
        if (one === anchorName) isAnnounced = true
      } catch (error) {
        run.failed(error)
      }
    }
  }
  if (!isAnnounced) run.say('not-announced', NOT_ANNOUNCED)
  else if (announcing !== null) {
    await replica.keeping.exclusively('write', async () => {
      await replica.refresh()
      await replica.change({ announcing: null })
    })
  }
  return { sent, taken: sent > 0 || made.isNew }
}

/** Send what a keeper lacks of a root, and pin it. What lies below the root that was last whole there was sent before. */
async function place(run: Run, keeper: Keeper, root: string, name: string, isState: boolean): Promise<number> {
  const { replica } = run
  const before = replica.kept.placed[keeper.name]
  if (before === root && (await keeper.has([root])).has(root)) return 0
  const old = before === undefined || !(await keeper.has([before])).has(before) ? new Set<string>() : treeOf(before, replica.blocks)
  const holes = new Set<string>()
  const tree = treeOf(root, replica.blocks, old, holes)
  const there = await keeper.has([...tree, ...holes])
  if (![...holes].every(cid => there.has(cid))) throw new ProviderError(keeper.name, true, `${keeper.name} was not given what is published: a part of it is neither here nor there; the next sync asks for it again`)
  const lacking = [...tree].filter(cid => !there.has(cid))
  // Children before parents: the tree was walked from its top.
  const blocks = lacking.reverse().map((cid): Block => [cid, replica.blocks.peek(cid) as Bytes])
  if (blocks.length > 0) await keeper.put(root, blocks, name)
  await keeper.pin(root, name)
  if (isState && root !== before) {
    await replica.keeping.exclusively('write', async () => {
      await replica.refresh()
      await replica.change({ placed: { [keeper.name]: root } })
    })
  }
  return blocks.length
}
