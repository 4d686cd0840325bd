/** The storage step of a sync: the joined state and the version to publish are durable before anything is sent. */

import { base64url, byCodePoints, type Bytes, canonical, compare, fromHex, hex, Refused, sha256 } from '../core/bytes.ts'
import { ipnsName } from '../core/cid.ts'
import { clockAfterSeeing } from '../core/clock.ts'
import { type Signer, signerOf } from '../core/curves.ts'
import { makeRecord, readRecord } from '../core/ipns.ts'
import { joinStates } from '../core/join.ts'
import { buildRoot, makeCommit, type MadeCommit, objectsOf, signedPair } from '../core/publishing.ts'
import type { Ring } from '../core/ring.ts'
import { readName, type Seen, type State } from '../core/state.ts'
import { buildTree } from '../core/tree.ts'
import { keyringFolder } from '../core/unixfs.ts'
import type { Head, VaultReading } from '../core/vault.ts'
import { isOwnWord } from '../core/views.ts'
import { type Kept, type KnownRoot, recordsText, type Replica } from '../device/replica.ts'
import { authorOf } from '../core/successors.ts'
import { treeOf } from './fetching.ts'
import type { Found } from './find.ts'
import { objectCid, type Run } from './run.ts'

export const ANCHOR_DAYS = 10 * 365
const DEVICE_DAYS = 365
const DAY_MS = 86_400_000
const TTL_NS = 300_000_000_000n
const MOST_JOINED = 1024
const MOST_PREV = 256
/** Number of known versions, and of those whose blocks stay here: the newest. */
const MOST_LOG = 256
const KEPT_ROOTS = 30
/** Number of unneeded blocks that may stay here. */
const MOST_GONE = 256

export type Announcing = NonNullable<Kept['announcing']>
/** A version to publish. `moved`: names that lead to it. */
export type Made = { readonly root: string; readonly isNew: boolean; readonly announcing: Announcing | null; readonly moved: readonly string[] }

/**
 * Store the joined state and the version to publish, durably. `revision`: of the state that was joined. Null if this device may not
 * publish.
 */
export async function keep(run: Run, found: Found, reading: VaultReading, ring: Ring, revision: number): Promise<Made | null> {
  const { replica } = run
  await replica.refresh()
  const { device, environment, kept } = replica
  // A write made here while others' texts were read is in one of both, and replaces what its writer was shown.
  const joined = replica.revision === revision ? reading.state : joinStates(replica.state, reading.state, found.reader.judgement(ring))
  const latest = [...joined.entries.values()].flatMap(entry => Object.values(entry).map(value => value.h)).reduce((a, b) => (a > b ? a : b), kept.clock)
  const clock = clockAfterSeeing(kept.clock, latest, environment.now())
  const known = [...new Set([...kept.joined, ...reading.heads.filter(one => one.keyless.length === 0).map(one => one.hash)])]
  const first = [...ring.said.members.values()].find(one => one.sign === ring.said.first)
  const entries = differences(replica, joined)
  const change: Mutable = {
    ...(ring.mark === replica.held.ring?.mark && ring.shut === replica.held.ring.shut ? {} : { ring: ring.kept() }),
    entries,
    seen: Object.fromEntries([...joined.seen].filter(([, pair]) => pair.r !== '')),
    clock,
    joined: known.slice(-MOST_JOINED),
    anchor: first?.anchor ?? kept.anchor,
    others: othersIn(replica, entries)
  }
  const moved: string[] = []
  const made = await makeVersion(run, reading, ring, joined, change)
  change.log = logWith(kept.log, reading, made, device.id, environment.now())
  let announcing: Announcing | null = null
  const { root } = run.how
  if (made !== null) {
    await point(run, device.signer, `/ipfs/${made.root}`, DEVICE_DAYS)
    moved.push(ipnsName(device.signer.public))
    if (root) {
      // Names of a new vault that no provider accepted yet stay to be announced.
      announcing = { root: keyringFolder(ring.file(), (cid, data) => replica.blocks.add(cid, data)).cid, head: hex(root.head), also: kept.announcing?.also ?? [] }
      replica.whole.add(announcing.root)
      await point(run, signerOf(root.headSeed), `/ipfs/${announcing.root}`, ANCHOR_DAYS)
      change.announcing = announcing
    } else if (kept.announcing !== null) {
      const head = fromHex(kept.announcing.head)
      if (found.reader.follow(head) === kept.announcing.root) announcing = kept.announcing
      else if (await isKnownAt(run, found, head)) change.announcing = null
      // Another device moved the anchor since, and only the root may move it on.
      else run.say('not-announced', 'other devices do not know this device yet: sync once more with the wallet or the recovery phrase')
    }
    if (announcing !== null) moved.push(ipnsName(fromHex(announcing.head)), ...(announcing.also ?? []))
  }
  const [news, blocks] = [newsIn(kept, { ...change, records: recordsText(run.names) }), replica.unkept()]
  // A sync without news stores nothing, so no listener is notified.
  if (Object.keys(news).length > 0 || blocks.length > 0 || replica.hasCounted) await replica.change(news, blocks)
  const live = liveBlocks(run, joined, made?.root ?? null, announcing?.root ?? null, found)
  const gone = live === null ? [] : [...replica.blocks.cids()].filter(cid => !live.has(cid))
  // A snapshot costs time with the size of the vault, so it is made only when worth it.
  if (gone.length > MOST_GONE || replica.isLong) await replica.snapshot([], gone)
  return made === null ? null : { ...made, announcing, moved }
}

/** Return the known versions with those joined or made now, oldest first. */
function logWith(log: readonly KnownRoot[], reading: VaultReading, made: Version | null, device: string, at: number): KnownRoot[] {
  const known = new Set(log.map(one => one.root))
  const joined = reading.heads.map(({ root, dev, c, state, ek }): KnownRoot => ({ root, dev, c, at, state, ek }))
  const own = made === null ? [] : [{ root: made.root, dev: device, c: made.c, at, state: made.state, ek: made.ek }]
  const news = [...joined, ...own].filter(one => !known.has(one.root) && known.add(one.root))
  return [...log, ...news].slice(-MOST_LOG)
}

/** Tell whether the ring to which an anchor leads contains this device. */
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

/** Return the part of a change that differs from the stored data. Its entries differ already. */
function newsIn(kept: Kept, { entries = {}, others = {}, records = {}, ...rest }: Mutable): Mutable {
  const newIn = <T extends object>(update: T, held: { readonly [name: string]: unknown }): T =>
    Object.fromEntries(Object.entries(update).filter(([name, value]) => canonical(value) !== canonical(held[name]))) as T
  const laid = { entries, others: newIn(others, kept.others), records: newIn(records, kept.records) }
  return { ...newIn(rest, kept), ...Object.fromEntries(Object.entries(laid).filter(([, one]) => Object.keys(one).length > 0)) }
}

/** Return the entries that differ from those here; empty ones are removed. */
function differences(replica: Replica, state: State): Kept['entries'] {
  const out: Record<string, Kept['entries'][string]> = {}
  for (const [name, entry] of state.entries) {
    const held = replica.held.entries.get(name)
    if (held === entry) continue
    if (held === undefined || JSON.stringify(sortedEntry(held)) !== JSON.stringify(sortedEntry(entry))) out[name] = entry
  }
  for (const name of replica.held.entries.keys()) if (!state.entries.has(name)) out[name] = {}
  return out
}

const sortedEntry = (entry: Kept['entries'][string]): unknown =>
  Object.entries(entry)
    .sort(([a], [b]) => byCodePoints(a, b))
    .map(([dot, value]) => [dot, value.body, value.h, value.kind, value.loc ?? null, value.base ?? null, value.of ?? null, value.s ?? null, value.b])

/** Return bodies of others' texts among the changes: one that is written again here keeps its author. */
function othersIn(replica: Replica, entries: Kept['entries']): Record<string, string> {
  const isOwn = isOwnWord(replica.isMine)
  const out: Record<string, string> = {}
  for (const [name, entry] of Object.entries(entries)) {
    if (readName(name).kind !== 'm') continue
    for (const [dot, value] of Object.entries(entry)) if (value.body !== null && !isOwn(dot, value)) out[value.body] = authorOf(dot, value, replica.isMine)
  }
  return out
}

/** Return the blocks of the newest roots, of the ring to which anchors lead, and of all texts; null if completeness is unknown. */
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

/** A version of this device: its root, the number of its commit, and the key of its state. */
type Version = { readonly root: string; readonly isNew: boolean; readonly c: number; readonly state: string; readonly ek: string }

/** Return the commit and the root to publish: of a head with the same state, or a new one. */
async function makeVersion(run: Run, reading: VaultReading, ring: Ring, joined: State, change: Mutable): Promise<Version | null> {
  const { replica } = run
  const { device, environment, kept } = replica
  const member = ring.said.members.get(device.id)
  if (member === undefined || member.role === 'reader') {
    run.say('not-a-writer', 'this device may read this vault but not write to it: nothing was published')
    return null
  }
  const key = ring.sealing
  if (key === null) {
    run.say('cannot-publish', 'nothing was published: no sealing key is valid now; sync once on a device with the wallet')
    return null
  }
  const state = { entries: joined.entries, seen: new Map(joined.seen) }
  const { n } = kept
  if (n > 0 && state.seen.get(device.id)?.r === '') {
    const r = hex(environment.chance(8))
    state.seen.set(device.id, await signedPair(device.signer, device.id, n, r, ring.tag))
    change.pairs = [...kept.pairs, [n, r]]
    change.seen = Object.fromEntries(state.seen)
  }
  const keyring = ring.file()
  const { digest } = buildTree(state.entries, replica.states)
  const ringHash = hex(sha256(keyring))
  const saysTheSame = (one: Head): boolean => one.state === digest && one.ek === key.id && one.ringHash === ringHash && sameSeen(one, state.seen)
  const equal = reading.heads.filter(saysTheSame).sort((a, b) => -compare([a.hash, a.root], [b.hash, b.root]))
  // A root made while an object was missing does not name it, and is no longer the common root.
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
  const root = buildRoot(ring, keyring, commit, state, replica.blocks, (cid, data) => replica.blocks.add(cid, data), replica.states)
  replica.whole.add(root)
  if (equal[0] !== undefined) return { ...what, root, isNew: false, c: equal[0].c }
  const c = nextNumber(replica, reading)
  change.commit = { c, hash: commit.hash, json: base64url(commit.json), signature: base64url(commit.signature), root }
  change.joined = [...(change.joined ?? []), commit.hash]
  return { ...what, root, isNew: true, c }
}

const sameSeen = (head: Head, seen: ReadonlyMap<string, Seen>): boolean =>
  head.keyless.length === 0 && head.seen.size === seen.size && [...seen].every(([dev, pair]) => head.seen.get(dev)?.n === pair.n && head.seen.get(dev)?.r === pair.r)

const nextNumber = (replica: Replica, reading: VaultReading): number =>
  1 + Math.max(replica.kept.commit?.c ?? 0, ...reading.heads.filter(one => one.dev === replica.device.id).map(one => one.c))

const newest = (heads: readonly Head[], own: string | undefined): string[] => {
  const all = [...heads].sort((a, b) => -compare([a.h, a.hash], [b.h, b.hash])).map(one => one.hash)
  return [...new Set([...(own === undefined ? [] : [own]), ...all])].slice(0, MOST_PREV)
}

/** Point a name of ours to a value, if it does not yet, or half of its record's life is over. */
export async function point(run: Run, signer: Signer, value: string, days: number): Promise<void> {
  const name = ipnsName(signer.public)
  const now = run.replica.environment.now()
  const held = run.names.get(name)
  const known = held === undefined ? null : await readRecord(name, held)
  const half = BigInt(now + (days * DAY_MS) / 2) * 1_000_000n
  if (known !== null && known.value === value && known.validUntil > half) return
  const validUntil = `${new Date(now + days * DAY_MS).toISOString().slice(0, -1)}000000Z`
  run.names.set(name, await makeRecord(signer, { value, sequence: known === null ? 1n : known.sequence + 1n, validUntil, ttlNs: TTL_NS }))
}
