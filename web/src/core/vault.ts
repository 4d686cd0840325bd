/** A whole published vault, read with only a key: anchor, ring, names, heads, join, views (FORMAT.md 7 and all before). */

import { type Bytes, compare, fromHex, fromUtf8, greatest, hex, join, need, refuse, Refused, type RefusalKind, sha256, unlessRefused, utf8 } from './bytes.ts'
import type { Blocks } from './blocks.ts'
import { cidOf, ipnsName, keyOfName, RAW } from './cid.ts'
import { clockMs, FAR_AHEAD_MS } from './clock.ts'
import { checkedState, type Commit, readCommit } from './commit.ts'
import { type BoxKey, type CheckAll, idOf } from './curves.ts'
import { type IpnsRecord, newestRecord, readRecord, type Target, targetOf } from './ipns.ts'
import { joinStates, type Judgement } from './join.ts'
import { type KeyringFile, keysOfOthers, openKeyring, parseKeyring, Ring } from './ring.ts'
import { type EpochKey, ObjectType, openHere, type SealedObject } from './sealed.ts'
import { type Location, readName, type State } from './state.ts'
import { buildTree, nodePath, readTree, sealedAs, StateCache } from './tree.ts'
import { keyringFolder, putFile } from './unixfs.ts'

/** Maximum number of names through which an anchor leads, and of records in a root under its pin name. */
export const MOST_RECORDS = 8

/** The pin name of an anchor's roots. */
export const pinName = (anchor: Bytes): string => `ipfsmem-${hex(sha256(join('ipfsmem/v1/pin', [0], anchor))).slice(0, 16)}`

/** Return the result of a reading, or null if it is refused; other errors are bugs. */
async function unlessRefusedAsync<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof Refused) return null
    throw error
  }
}

/** Maximum number of roots of one list that are examined if names lead somewhere, newest first. */
export const MOST_LISTED = 128
/** Reasons for the lack of a first ring, the least informative first. */
const WHY = ['none', 'other kind', 'missing', 'damaged', 'member'] as const satisfies readonly RefusalKind[]
const WEEK_MS = 7 * 24 * 60 * 60 * 1000

/**
 * The result for a root that may be a head. `past`: everything in it is already joined; `unread`: its ring or its commit is not here, and a
 * provider that did not answer may have it.
 */
export type Verdict = 'joined' | 'joined in part' | 'past' | 'damaged' | 'held' | 'unread' | 'refused: head' | 'refused: state'

export type Head = Commit & { readonly root: string; readonly ring: Ring }

export type VaultReading = {
  readonly ring: Ring
  readonly state: State
  readonly digest: string
  readonly verdicts: Readonly<Record<string, Verdict>>
  /** The heads that were joined, or that a joined one contains. */
  readonly heads: readonly Head[]
  /** The root on which all devices converge, null if none contains everything. */
  readonly root: string | null
}

class Reading implements VaultReading {
  constructor(
    readonly ring: Ring,
    readonly state: State,
    readonly verdicts: Readonly<Record<string, Verdict>>,
    readonly heads: readonly Head[],
    readonly known: StateCache
  ) {}

  // Computed on request: most callers do not need it.
  get digest(): string {
    return buildTree(this.state.entries, this.known).digest
  }

  get root(): string | null {
    return rootOf(this.heads, this.digest, this.state)
  }
}

/** The prior knowledge of a reader: empty on a new device. */
export type Past = {
  readonly state: State
  /** Hashes of commits that are part of that state, whole. */
  readonly joined: ReadonlySet<string>
}
const NO_PAST: Past = { state: { entries: new Map(), seen: new Map() }, joined: new Set() }

export type ReaderInput = {
  /** Box keys that may open slots. */
  readonly boxes: readonly BoxKey[]
  /** The requested kind of vault; never taken from the data. */
  readonly plain: boolean
  readonly blocks: Blocks
  /** Records by name, from any channel. */
  readonly names: ReadonlyMap<string, Bytes>
  /** Roots by pin name, newest first. */
  readonly pins: Readonly<Record<string, readonly string[]>>
  /** Milliseconds since 1970. */
  readonly now: number
  /** Cached results about states. */
  readonly known?: StateCache
  /** A root that a person named to begin with: its ring is accepted for every owner of the vault, not only for the first. */
  readonly begin?: string | null
  /** Checks many signatures; default: this thread. */
  readonly checkAll?: CheckAll | undefined
  /** Called with a state while other threads check its signatures: nothing of it is verified yet. */
  readonly meanwhile?: (ring: Ring, entries: State['entries']) => Promise<void>
}

/** The public keys of the owner who looks for a vault. */
export type Seeker = { readonly admin: Bytes; readonly head: Bytes }

export class VaultReader {
  readonly #records = new Map<string, IpnsRecord>()
  readonly #known: StateCache

  constructor(readonly input: ReaderInput) {
    this.#known = input.known ?? new StateCache()
  }

  /** Read everything, as a new device. */
  async read(seeker: Seeker): Promise<VaultReading> {
    await this.takeRecords()
    const ring = await this.grow(await this.firstRing(seeker))
    need(isAdminOf(ring, seeker), 'member', 'this key was revoked')
    return this.joinAll(ring)
  }

  /** Check the records of the input; those not signed by their names are ignored. */
  async takeRecords(): Promise<void> {
    for (const [name, bytes] of this.input.names) await this.#offer(name, bytes)
  }

  /** Join all heads with this device's state (FORMAT.md 9, steps 3 and 4). */
  async joinAll(ring: Ring, past: Past = NO_PAST): Promise<VaultReading> {
    const verdicts: Record<string, Verdict> = {}
    const { named, listed } = this.places(ring)
    const found = new Map<string, Head>()
    for (const root of [...named, ...listed]) {
      try {
        const head = await this.#head(root, ring)
        if (head !== null) found.set(root, head)
      } catch (error) {
        verdicts[root] = verdictOf(error, 'head')
      }
    }
    const copies = copiesAmong([...found.values()], this.input.now)
    const heads: Head[] = []
    let { state } = past
    const judge = this.judgement(ring)
    const join = async (top: Head): Promise<boolean> => {
      try {
        const isKnown = past.joined.has(top.hash) && top.keyless.length === 0
        const theirs = isKnown ? null : await this.#state(top, ring, state)
        // The counters of one copy cover values that only the other one had; this client does not write those under its own dots.
        need(!copies.has(top), 'held', 'made by another copy of its device')
        if (theirs !== null) state = joinStates(state, theirs, judge)
        return true
      } catch (error) {
        verdicts[top.root] = verdictOf(error, 'state')
        return false
      }
    }
    const joinGroup = async (roots: readonly string[]): Promise<void> => {
      const left = new Set(roots.flatMap(root => found.get(root) ?? []))
      while (left.size > 0) {
        for (const { top, below } of tops([...left])) {
          left.delete(top)
          if (!(await join(top))) continue
          for (const one of [top, ...below.filter(lower => left.delete(lower))]) {
            verdicts[one.root] = one.keyless.length > 0 ? 'joined in part' : 'joined'
            heads.push(one)
          }
        }
      }
    }
    await joinGroup(named)
    const isCovered = (one: Head): boolean => one.keyless.length === 0 && coversPairs(state.seen, one.seen)
    const whole = heads.filter(one => one.keyless.length === 0)
    const before = new Set(whole.flatMap(one => one.prev))
    const isAny = whole.length > 0 || past !== NO_PAST
    const isPast = (one: Head): boolean => {
      if (!isAny || copies.has(one) || !isCovered(one)) return false
      const isNamed = before.has(one.hash)
      if (!isNamed && clockMs(one.h) >= this.input.now - WEEK_MS) return false
      verdicts[one.root] = isNamed ? 'joined' : 'past'
      if (isNamed) heads.push(one)
      return true
    }
    await joinGroup(listed.filter(root => found.has(root) && !isPast(found.get(root) as Head)))
    const newest = greatestText(heads.map(one => one.h))
    const hashes = new Set(heads.map(one => one.hash))
    for (const [root, head] of found) {
      if (verdicts[root] !== 'damaged') continue
      const isOld = !copies.has(head) && head.h < newest && isCovered(head)
      if (isOld || hashes.has(head.hash)) verdicts[root] = 'past'
    }
    // The root of a device's name is a head, even if unreadable; a root in a list may be anything.
    const isUnread = named.some(root => verdicts[root] === 'unread' && this.#isOfDevice(ring, root))
    need(past !== NO_PAST || isBack(heads, Object.values(verdicts), isUnread), 'damaged', 'no head can be read whole')
    return new Reading(ring, state, verdicts, heads, this.#known)
  }

  /** Accept a record from any channel if its name signed it. */
  async #offer(name: string, bytes: Bytes): Promise<void> {
    const record = await unlessRefusedAsync(() => readRecord(name, bytes))
    if (record === null) return
    const held = this.#records.get(name)
    this.#records.set(name, held === undefined ? record : newestRecord([record, held]))
  }

  /** The target of a key's name; null if none. */
  target(name: string): Target | null {
    const record = this.#records.get(name)
    return record === undefined ? null : unlessRefused(() => targetOf(record))
  }

  /** The root of a device: its own name leads to one directly, or its holder could name another device's, or an endless chain. */
  rootOfDevice(publicKey: Bytes): string | null {
    return this.target(ipnsName(publicKey))?.cid ?? null
  }

  /** The root to which an anchor's name leads, through other names; null if none. */
  follow(publicKey: Bytes): string | null {
    let name = ipnsName(publicKey)
    for (let steps = 0; steps < MOST_RECORDS; steps++) {
      const to = this.target(name)
      if (to === null) return null
      if (to.cid !== null) return to.cid
      name = to.name
    }
    return null
  }

  /** The last name through which an anchor leads. */
  #lastName(publicKey: Bytes): string {
    let name = ipnsName(publicKey)
    for (let steps = 0; steps < MOST_RECORDS; steps++) name = this.target(name)?.name ?? name
    return name
  }

  /** Tell whether a root has a valid ring, as far as this key can tell. */
  async #isRing(root: string): Promise<boolean> {
    const found = await this.#keyringAt(root)
    return found !== null && (found.file.plain !== this.input.plain || (await unlessRefusedAsync(() => this.#opened(found))) !== null)
  }

  /** Tell whether a ring has a statement of this key with its anchor, and `main` as the anchor of its first root. */
  #hasBoth(file: KeyringFile, keys: Seeker, main: Bytes): boolean {
    const first = file.open.find(one => one.t === 'genesis')?.by
    const isOf = (sign: string | undefined, anchor: Bytes): boolean => file.open.some(one => one.t === 'member' && one.sign === sign && one.anchor === hex(anchor))
    return isOf(hex(keys.admin), keys.head) && isOf(first, main)
  }

  /** The bytes of a root's ring; null if it names none, refused as `missing` if they are not here. */
  #keyringBytes(root: string): Bytes | null {
    const cid = this.#keyringCid(root)
    return cid === null ? null : this.input.blocks.file(cid)
  }

  #keyringCid(root: string): string | null {
    const { blocks } = this.input
    return blocks.at(root, 'keyring.json') ?? blocks.at(root, 'memory/.ipfsmem/keyring.json')
  }

  /** A root's ring, and its bytes; null if unreadable. */
  #keyringAt(root: string): Promise<Found | null> {
    return unlessRefusedAsync(async () => {
      const cid = this.#keyringCid(root)
      need(cid !== null, 'format', 'no keyring.json')
      return this.#known.ring(cid, async () => {
        const bytes = this.input.blocks.file(cid)
        return { cid, bytes, file: await parseKeyring(bytes) }
      })
    })
  }

  /** Open a ring with the box keys of the input; cached for the same keys. */
  #opened({ cid, file }: Found, known: readonly EpochKey[] = []): Promise<Ring> {
    const { boxes } = this.input
    const name = [cid, ...boxes.map(box => hex(box.public)), ...known.map(key => `${key.id} ${hex(sha256(key.key))}`)].join()
    return this.#known.ring(name, () => openKeyring(file, boxes, known))
  }

  /** Accept the records in a root under an anchor's pin name, if it is valid (7, "Anchor roots"). */
  async #takeAnchorRoot(root: string, head: Bytes): Promise<void> {
    const { blocks } = this.input
    await unlessRefusedAsync(async () => {
      const { keyring, records } = anchorRoot(blocks, root)
      const read = new Map<string, IpnsRecord>()
      for (const [name, bytes] of records) read.set(name, await readRecord(name, bytes))
      const to = end(read, ipnsName(head))
      const folder = keyringFolder(keyring)
      need(to === folder.cid, 'format', 'the records lead to another ring')
      blocks.add(folder.cid, folder.block)
      blocks.add(cidOf(RAW, keyring).text, keyring)
      for (const [name, bytes] of records) await this.#offer(name, bytes)
    })
  }

  /**
   * Return the vault that this key signed for. Refused if there is none (`none`), or only one of the other kind, if its anchor leads to a
   * ring that is not here (`missing`), or if roots of it are listed and none can be verified (`damaged`).
   */
  async firstRing(keys: Seeker): Promise<Ring> {
    const { pins, plain, begin } = this.input
    const own = pins[pinName(keys.head)] ?? []
    for (const root of own) await this.#takeAnchorRoot(root, keys.head)
    const anchor = this.follow(keys.head)
    // If the ring at the end of a key's names is lost or malformed, the list of the anchor to which they lead may have another one.
    const main = keyOfName(this.#lastName(keys.head))
    const isLost = anchor !== null && !(await this.#isRing(anchor))
    const listed = isLost ? [...own, ...(pins[pinName(main)] ?? [])] : own
    let why: RefusalKind = 'none'
    const note = (kind: (typeof WHY)[number]): void => void (why = greatest([why, kind], one => [WHY.indexOf(one as typeof kind)]))
    const candidates: Ring[] = []
    for (const root of new Set([...(anchor === null ? [] : [anchor]), ...listed])) {
      const found = root === anchor && isLost ? null : await this.#keyringAt(root)
      if (found === null) {
        if (root === anchor) note('missing')
        continue
      }
      const isFirst = found.file.open.some(one => one.t === 'genesis' && one.roots[0] === hex(keys.admin))
      if (!isFirst && root !== anchor && root !== begin && !(isLost && this.#hasBoth(found.file, keys, main))) continue
      if (found.file.plain !== plain) {
        note('other kind')
        continue
      }
      if (root !== anchor && root !== begin && this.#isHeadless(root)) continue
      const opened = await unlessRefusedAsync(() => this.#opened(found))
      const itself = opened === null ? null : new Ring(opened.tag, opened.plain, opened.all, []).joinedWith(opened)
      const isNamed = root === anchor && this.#isHeadless(root)
      const read = itself && !isNamed ? await unlessRefusedAsync(() => this.#commit(root, { found, joined: itself.joined, all: itself.reading })) : null
      const use = (ring: Ring): Ring => ring.withKey(read?.reading.readable.find(key => key.id === read.commit.ek))
      if (opened !== null && root === anchor && (opened.shut || !isAdminOf(opened, keys))) return refuse('member', 'this key was revoked')
      else if (opened?.shut !== false && root === begin && root !== anchor && !isFirst) continue // a saved copy of other keys
      else if (opened === null || itself === null || opened.shut || !(isNamed || read !== null)) note('damaged')
      else if (!isAdminOf(opened, keys)) note('member')
      else if (root === anchor) return use(itself.joined)
      else candidates.push(use(itself.joined))
    }
    const [first, ...more] = candidates
    // Whatever the order of the list: each may have a revoke that the maker of another did not know.
    if (first !== undefined) return more.reduce((ring, other) => unlessRefused(() => ring.joinedWith(other).joined.with([], other.readable)) ?? ring, first)
    return refuse(why, 'there is no vault that this key signed for')
  }

  /** Return the ring of this vault to which its anchor leads: for a device with a pointer. Refused if there is none. */
  async ringOf(tag: Bytes, anchor: Bytes): Promise<Ring> {
    const root = this.follow(anchor)
    const found = root === null ? null : await this.#keyringAt(root)
    need(found !== null, 'none', 'vault not found')
    need(hex(found.file.tag) === hex(tag), 'vault', 'its name leads to another vault')
    const first = found.file.open.find(one => one.t === 'member' && one.role === 'admin' && one.anchor === hex(anchor))
    need(first !== undefined, 'vault', 'its name is not one of its anchors')
    return this.#opened(found)
  }

  /**
   * Roots that may be heads: those of device names, and those of the pin list of the first root's anchor. If no name leads anywhere, listed
   * roots are treated as named.
   */
  places(ring: Ring): { named: string[]; listed: string[] } {
    const { said } = ring
    const devices = [...said.members.values()].filter(one => one.role !== 'reader').map(one => this.rootOfDevice(fromHex(one.sign)))
    const anchors = said.anchors().map(key => this.follow(fromHex(key)))
    const first = said.first === undefined ? undefined : said.members.get(idOf(fromHex(said.first)))
    const pinned = first?.anchor ? (this.input.pins[pinName(fromHex(first.anchor))] ?? []) : []
    const named = [...new Set([...devices, ...anchors.filter(root => root !== null && this.#hasCommit(root, true))].filter(root => root !== null))]
    const listed = [...new Set(pinned)].filter(root => !named.includes(root))
    if (named.length === 0 && anchors.every(root => root === null)) return { named: listed, listed: [] }
    return { named, listed: listed.slice(0, MOST_LISTED) }
  }

  #isOfDevice(ring: Ring, root: string): boolean {
    return [...ring.said.members.values()].some(one => one.role !== 'reader' && this.rootOfDevice(fromHex(one.sign)) === root)
  }

  /** Roots of pin lists with a commit signed by a device of this vault. */
  async shown(ring: Ring): Promise<string[]> {
    const { named, listed } = this.places(ring)
    const pinned = new Set(Object.values(this.input.pins).flat())
    const roots = [...named.filter(root => pinned.has(root)), ...listed]
    const heads = await Promise.all(roots.map(root => unlessRefusedAsync(() => this.#head(root, ring))))
    return heads.flatMap(one => one?.root ?? [])
  }

  /** Join the ring with those of anchors and verified heads, until nothing new is learned. */
  async grow(start: Ring): Promise<Ring> {
    let ring = start
    for (let before = ''; before !== ring.mark; ) {
      before = ring.mark
      ring = await this.growByLists(await this.growByNames(ring))
    }
    return ring
  }

  /**
   * Join the ring with those to which anchors and the names of devices lead, until a round learns nothing new. Lists are read after that.
   */
  async growByNames(start: Ring): Promise<Ring> {
    let ring = start
    for (let before = ''; before !== ring.mark; ) {
      before = ring.mark
      for (const anchor of ring.said.anchors()) {
        const root = this.follow(fromHex(anchor))
        if (root === null || !this.#isHeadless(root)) continue
        ring = await this.#grown(ring, ring, root, async theirs => theirs.joined)
      }
      ring = await this.#grownByAll(ring, this.places(ring).named)
    }
    return ring
  }

  /** Join the ring with those in lists. */
  growByLists(ring: Ring): Promise<Ring> {
    return this.#grownByAll(ring, this.places(ring).listed)
  }

  /**
   * Join our ring with those of verified heads among these roots. In each round all are judged by the ring before it: whichever is read
   * first, none prevents learning another's revoke.
   */
  async #grownByAll(start: Ring, roots: readonly string[]): Promise<Ring> {
    let ring = start
    for (let before: Ring | null = null; before?.mark !== ring.mark; ) {
      const judge = ring
      before = judge
      for (const root of roots) {
        ring = await this.#grown(ring, judge, root, async theirs => {
          const { commit, reading } = await this.#commit(root, theirs)
          const { joined } = judge === ring ? theirs : ring.joinedWith(await this.#opened(theirs.found, judge.readable))
          return joined.withKey(reading.readable.find(key => key.id === commit.ek))
        })
      }
    }
    return ring
  }

  /**
   * Join our ring with a root's, once `verified` accepted it, on trial with the ring `judge`; if no key opens the root, with the open part
   * of its ring: a key may have been replaced.
   */
  async #grown(ring: Ring, judge: Ring, root: string, verified: (theirs: Trial) => Promise<Ring>): Promise<Ring> {
    try {
      return await verified(await this.#trial(root, judge))
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      const file = error.kind === 'open' ? (await this.#keyringAt(root))?.file : undefined
      return file === undefined || hex(file.tag) !== hex(ring.tag) ? ring : (unlessRefused(() => ring.with(file.open)) ?? ring)
    }
  }

  /** Join our ring with a root's, on trial; refused if that is not a ring of this vault, or does not open. */
  async #trial(root: string, ring: Ring): Promise<Trial> {
    const found = await this.#keyringAt(root)
    need(found !== null && hex(found.file.tag) === hex(ring.tag), 'vault', 'its ring is not of this vault')
    const opened = await this.#opened(found, ring.readable)
    need(!opened.shut, 'open', 'a ring that no key opens')
    const { joined, reading } = ring.joinedWith(opened)
    return { found, joined, all: reading }
  }

  /** The path of the commit in a root of its form: one with its ring at the top, as in roots of anchors, has that of a sealed one. */
  #headPath(root: string): string {
    return this.input.blocks.at(root, 'keyring.json') === null ? 'memory/.ipfsmem/commit.json' : 'head.ipm'
  }

  #hasCommit(root: string, wanted: boolean): boolean {
    return unlessRefused(() => this.#keyringCid(root) !== null && (this.input.blocks.at(root, this.#headPath(root)) !== null) === wanted) ?? false
  }

  /** Tell whether a root has a ring and no commit, as the targets of anchors do. */
  #isHeadless(root: string): boolean {
    return this.#hasCommit(root, false)
  }

  #headBytes(root: string): Bytes {
    const path = this.#headPath(root)
    need((path === 'head.ipm') !== this.input.plain, 'format', 'of the other kind')
    return this.input.blocks.read(root, path)
  }

  /**
   * Return the verified commit of a root, and the ring that read it: if that has no key for it, those in slots not signed by roots are
   * tried.
   */
  async #commit(root: string, { all, found }: Trial): Promise<{ commit: Commit; reading: Ring }> {
    const head = this.#headBytes(root)
    try {
      return { commit: await readCommit(head, all, found.bytes), reading: all }
    } catch (error) {
      if (!(error instanceof Refused) || error.kind !== 'open') throw error
    }
    const { boxes } = this.input
    const more = await this.#known.ring(['others', found.cid, ...boxes.map(box => hex(box.public))].join(), () => keysOfOthers(found.file, boxes))
    const reading = all.with([], more)
    return { commit: await readCommit(head, reading, found.bytes), reading }
  }

  /** Return the verified commit of a root, and the ring that verified it; null if it has a ring and no commit. */
  async #head(root: string, ring: Ring): Promise<Head | null> {
    // Missing blocks may arrive, and are not the writer's fault: neither is judged before both are here.
    this.#keyringBytes(root)
    const cid = this.input.blocks.at(root, this.#headPath(root))
    if (cid !== null) this.input.blocks.file(cid)
    const theirs = await this.#trial(root, ring)
    if (this.#isHeadless(root)) return null
    const { commit, reading } = await this.#commit(root, theirs)
    return { ...commit, root, ring: reading }
  }

  /** Read and check the whole state that a commit names. */
  #state(head: Head, ring: Ring, held: State): Promise<State> {
    const { plain, blocks } = this.input
    const key = head.ring.readable.find(one => one.id === head.ek)
    let ours: ReturnType<typeof buildTree> | null = null
    /** A node that is also in the joined state: it has nothing new, and its loss costs nothing. */
    const known = (prefix: string, hash: string): Bytes | null => {
      ours ??= buildTree(held.entries, this.#known)
      return ours.hashes.get(prefix) === hash ? utf8(ours.nodes.get(prefix) as string) : null
    }
    const read = (prefix: string, hash: string): Bytes | null => {
      const text = stored(prefix, hash)
      return text !== null && hex(sha256(text)) === hash ? text : known(prefix, hash)
    }
    const stored = (prefix: string, hash: string): Bytes | null => {
      const path = plain ? `memory/.ipfsmem/${nodePath(prefix)}.json` : `${nodePath(prefix)}.ipm`
      const file = unlessRefused(() => blocks.file(blocks.at(head.root, path) ?? refuse('missing')))
      if (file === null || plain) return file
      const text = key === undefined ? null : unlessRefused(() => key.open(ObjectType.node, prefix, file))
      if (key !== undefined && text !== null && hex(sha256(text)) === hash) opened.push(() => this.#known.noteMade(path, sealedAs(key, hash), putFile(file, () => undefined)))
      return text
    }
    const opened: (() => void)[] = []
    const entries = readTree(head.state, read, this.#known)
    // Each of them matches its hash, or this was not reached.
    for (const note of opened) note()
    return checkedState(entries, head, ring, { held, checkAll: this.input.checkAll, meanwhile: async state => this.input.meanwhile?.(ring, state) })
  }

  /** The plain bytes at a location, or null: not here, of another size, or they do not open. */
  object(ring: Ring, name: string, loc: Location): Bytes | null {
    return openedObject(this.input.blocks, ring, name, loc)
  }

  /** The rules of a join that need objects and this ring. */
  judgement(ring: Ring): Judgement {
    const epochs = new Map(ring.readable.map(key => [key.id, key.epoch]))
    return {
      passes: (name, value, field, loc) => {
        const data = this.object(ring, name, loc)
        if (data === null) return false
        const hash = hex(sha256(data))
        return field === 'loc' ? hash === value.body : hash.startsWith(value.b[0] as string)
      },
      order: loc => [epochs.get(loc[0]) ?? 0, ...loc],
      admissionOf: dev => ring.said.admissionOf(dev)
    }
  }
}

/** The plain bytes at a location of an entry, or null: not here, of another size, or they do not open. */
export function openedObject(blocks: Blocks, ring: Ring, name: string, loc: Location): Bytes | null {
  if (!ring.plain) {
    const sealed = sealedAt(blocks, ring, name, loc)
    return sealed && openHere(sealed)
  }
  return unlessRefused(() => {
    const stored = blocks.object(loc[1])
    need(loc[0] === '' && stored.length === loc[2], 'open')
    return stored
  })
}

/**
 * The sealed object at a location of an entry in a sealed vault; null if it is not here, of another size, or under a key that is not here.
 */
export function sealedAt(blocks: Blocks, ring: Ring, name: string, loc: Location): SealedObject | null {
  const object = unlessRefused(() => blocks.sealedObject(loc[1]))
  const key = ring.readable.find(one => one.id === loc[0])
  if (object === null || object.length !== loc[2] || key === undefined) return null
  const { type, ctx } = readName(name)
  return { key, type, ctx, object }
}

/** Tell whether a key is a root or an admin that was not removed, as far as known. */
function isAdminOf(ring: Ring, { admin }: Seeker): boolean {
  const id = idOf(admin)
  return ring.said.members.get(id)?.role === 'admin' && !ring.said.asked.has(id)
}

/**
 * A root's ring file, and our ring joined with it on trial: `joined` with the permanent keys, `all` with every key for reading that root.
 */
type Found = { readonly cid: string; readonly bytes: Bytes; readonly file: KeyringFile }
type Trial = { readonly found: Found; readonly joined: Ring; readonly all: Ring }

function verdictOf(error: unknown, part: 'head' | 'state'): Verdict {
  if (!(error instanceof Refused)) throw error
  if (part === 'head') return error.kind === 'missing' ? 'unread' : 'refused: head'
  const known: Partial<Record<RefusalKind, Verdict>> = { damaged: 'damaged', missing: 'damaged', held: 'held' }
  return known[error.kind] ?? 'refused: state'
}

/** Tell whether a vault is restored: a head with counters was joined, or nothing else there may have texts. */
function isBack(heads: readonly Head[], verdicts: readonly Verdict[], isUnread: boolean): boolean {
  if (heads.some(one => one.numbers.size > 0)) return true
  if (isUnread || verdicts.includes('damaged')) return false
  return heads.length > 0 || !verdicts.some(one => one === 'unread' || one.startsWith('refused'))
}

const greatestText = (all: readonly string[]): string => all.reduce((best, one) => (one > best ? one : best), '')

/**
 * Heads made by another copy of their device: a lower number and a later clock than its newest one, and not an ancestor of any head (5).
 */
function copiesAmong(heads: readonly Head[], now: number): Set<Head> {
  const named = new Set(heads.flatMap(one => one.prev))
  const newest = new Map<string, Head>()
  for (const one of heads) {
    const other = newest.get(one.dev)
    if (other === undefined || other.c < one.c) newest.set(one.dev, one)
  }
  return new Set(
    heads.filter(one => {
      const top = newest.get(one.dev) as Head
      return one.c < top.c && !named.has(one.hash) && one.h > top.h && clockMs(one.h) < now + FAR_AHEAD_MS
    })
  )
}

/** The ring and the records of a root under an anchor's pin name. */
function anchorRoot(blocks: Blocks, root: string): { keyring: Bytes; records: [string, Bytes][] } {
  const files = blocks.folder(root)
  const ring = files?.get('keyring.json')
  need(files !== null && ring !== undefined, 'format', 'not the root of an anchor')
  const others = [...files].filter(([name]) => name !== 'keyring.json')
  need(others.length >= 1 && others.length <= MOST_RECORDS && others.every(([name]) => name.endsWith('.ipns')), 'format', 'not the root of an anchor')
  return { keyring: blocks.file(ring), records: others.map(([name, cid]): [string, Bytes] => [name.slice(0, -5), blocks.file(cid)]) }
}

/** The root to which records lead from a name. */
function end(records: ReadonlyMap<string, IpnsRecord>, start: string): string {
  let name = start
  for (let steps = 0; steps <= records.size; steps++) {
    const record = records.get(name)
    need(record !== undefined, 'format', 'records that do not lead on')
    const to = targetOf(record)
    need(to !== null, 'format', 'a record without a target')
    if (to.cid !== null) return to.cid
    name = to.name
  }
  return refuse('format', 'records that lead in a circle')
}

/**
 * Heads that no other one of these contains, each with those that it contains: joined with it (7). By clock and hash, those whose counters
 * another one covers last.
 */
function tops(heads: readonly Head[]): { top: Head; below: Head[] }[] {
  const byHash = new Map(heads.map(one => [one.hash, one]))
  const below = (one: Head): Head[] =>
    one.keyless.length > 0 ? [] : one.prev.flatMap(hash => byHash.get(hash) ?? []).filter(other => covers(one, other))
  const held = new Set(heads.flatMap(below))
  // Each once: devices that publish in turns make versions with two ancestors each, and the number of paths explodes.
  const reached = (top: Head): Head[] => {
    const found = new Set(below(top))
    for (const one of found) for (const other of below(one)) found.add(other)
    return [...found]
  }
  const left = heads.filter(one => !held.has(one))
  const isLast = (one: Head): number => (left.some(other => other.hash !== one.hash && covers(other, one)) ? 1 : 0)
  return left
    .map(top => ({ top, order: [isLast(top), top.h, top.hash] }))
    .sort((a, b) => compare(a.order, b.order))
    .map(({ top }) => ({ top, below: reached(top) }))
}

const covers = (one: Head, other: Head): boolean => coversPairs(one.seen, other.seen)

const coversPairs = (mine: State['seen'], theirs: State['seen']): boolean =>
  [...theirs].every(([dev, pair]) => {
    const own = mine.get(dev)
    return own !== undefined && (own.n > pair.n || (own.n === pair.n && own.r === pair.r))
  })

/** The root on which all devices converge: of the heads that were joined whole and have the joined state, that of the greatest commit. */
function rootOf(heads: readonly Head[], digest: string, state: State): string | null {
  const seenText = (seen: State['seen']): string => [...seen].map(([dev, pair]) => `${dev} ${pair.n} ${pair.r}`).sort().join()
  const same = heads.filter(one => one.keyless.length === 0 && one.state === digest && seenText(one.seen) === seenText(state.seen))
  return same.length > 0 ? greatest(same, one => [one.hash, one.root]).root : null
}

/** The text of a memory, or null. */
export const textOf = (data: Bytes | null): string | null => (data === null ? null : unlessRefused(() => fromUtf8(data)))
