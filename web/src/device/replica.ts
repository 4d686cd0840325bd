/**
 * The data of a vault on a device: the joined state, the ring, its own counters, and the blocks; stored as a snapshot and changes since.
 */

import { Blocks } from '../core/blocks.ts'
import { base64url, type Bytes, fromBase64url, fromUtf8, utf8 } from '../core/bytes.ts'
import { CLOCK_ZERO } from '../core/clock.ts'
import { Ring } from '../core/ring.ts'
import { type Entry, type Location, readName, type Seen, type State } from '../core/state.ts'
import { StateCache } from '../core/tree.ts'
import type { SealedObject } from '../core/sealed.ts'
import { openedObject, sealedAt } from '../core/vault.ts'
import { fetcherOf, type IsMine, noteHash, type ShownView, shownView } from '../core/views.ts'
import type { DeviceStorage } from '../store/device_storage.ts'
import type { Block } from '../sync/provider.ts'
import { onThisThread } from './offloading.ts'
import type { Device, Environment } from './device.ts'

/** The last commit of this device, and the root under which it was published. */
export type OwnCommit = { readonly c: number; readonly hash: string; readonly json: string; readonly signature: string; readonly root: string }

/** A version that this device made or joined: device and number of its commit, when it was first known here, and the key of its state. */
export type KnownRoot = { readonly root: string; readonly dev: string; readonly c: number; readonly at: number; readonly state: string; readonly ek: string }

/** Uses of a memory here, the day of the last use (since 1970), uses not reported yet; and uses and last day before that day. */
export type Use = readonly [times: number, day: number, untold: number, timesBefore?: number, dayBefore?: number]

/**
 * Everything but blocks. A change is a part of it; `entries` and `records` are merged into the existing ones, an empty entry removes one.
 */
export type Kept = {
  readonly ring: unknown
  readonly entries: Readonly<Record<string, Entry>>
  readonly seen: Readonly<Record<string, Seen>>
  /** Number of this device's last write, its last clock value, and its number of events. */
  readonly n: number
  readonly clock: string
  readonly events: number
  /** Every (n, r) that this device drew. */
  readonly pairs: readonly (readonly [number, string])[]
  /** Hashes of commits that are part of the state, whole. */
  readonly joined: readonly string[]
  readonly commit: OwnCommit | null
  readonly records: Readonly<Record<string, string>>
  /** The root that was last found complete at each provider. */
  readonly placed: Readonly<Record<string, string>>
  /** Public key of the first root's anchor, in hex; roots are pinned under its name. */
  readonly anchor: string
  /**
   * Announcement of this device that no provider has accepted yet: a folder with the ring, the anchor key to point to it, in hex, and
   * further names that lead to that.
   */
  readonly announcing: { readonly root: string; readonly head: string; readonly also?: readonly string[] } | null
  /** Bodies of others' texts that this device has held, with their authors. */
  readonly others: Readonly<Record<string, string>>
  /** Known versions, the newest last. */
  readonly log: readonly KnownRoot[]
  /** Uses of memories by entry name, and the day of the last report. */
  readonly uses: Readonly<Record<string, Use>>
  readonly told: number
}

const NOTHING: Kept = {
  ring: null,
  entries: {},
  seen: {},
  n: 0,
  clock: CLOCK_ZERO,
  events: 0,
  pairs: [],
  joined: [],
  commit: null,
  records: {},
  placed: {},
  anchor: '',
  announcing: null,
  others: {},
  log: [],
  uses: {},
  told: 0
}
/** Number of changes after which the next one makes a snapshot. */
const MOST_CHANGES = 200
const DAY_MS = 86_400_000

export class Replica {
  readonly blocks = new Blocks()
  /** Cached results about states. */
  readonly states = new StateCache()
  /** CIDs of roots below which no block is missing here. */
  readonly whole = new Set<string>()
  #kept: Kept = NOTHING
  #entries = new Map<string, Entry>()
  #ring: Ring | null = null
  /** State joined by a first sync and not stored yet: shown until it is stored; no write is based on it. */
  #ahead: { readonly ring: Ring; readonly entries: ReadonlyMap<string, Entry> } | null = null
  #revision = 0
  #changes = 0
  #views = new Map<string, { entry: Entry; view: ShownView }>()
  readonly #used = new Map<string, Use>()
  /** CIDs of blocks in this device's storage. */
  readonly #durable = new Set<string>()
  /** Names of entries whose view may change when blocks arrive, and locations that did not open. */
  readonly #unsure = new Set<string>()
  readonly #shut = new Set<string>()
  #opened = new Map<string, Bytes | null>()

  constructor(
    readonly device: Device,
    readonly storage: DeviceStorage,
    readonly environment: Environment
  ) {}

  get kept(): Kept {
    return this.#kept
  }

  get ring(): Ring | null {
    return this.#ahead?.ring ?? this.#ring
  }

  get entries(): ReadonlyMap<string, Entry> {
    return this.#ahead?.entries ?? this.#entries
  }

  /** The same without the state that is shown before it is stored. */
  get held(): { readonly ring: Ring | null; readonly entries: ReadonlyMap<string, Entry> } {
    return { ring: this.#ring, entries: this.#entries }
  }

  /**
   * Show the state that a first sync joined, before it is stored; null: the sync failed, show nothing of it. `person`: the owner of the key
   * that opened it.
   */
  showAhead(ahead: { readonly ring: Ring; readonly entries: ReadonlyMap<string, Entry> } | null, person?: string): void {
    this.#ahead = ahead
    this.#person = person
    this.#views = new Map()
  }

  /** Open the objects of a state that is shown if its signatures are valid. Their content does not depend on the signatures. */
  readonly openAhead = async (ring: Ring, entries: ReadonlyMap<string, Entry>): Promise<void> => {
    const found = new Map<string, SealedObject>()
    for (const [name, entry] of ring.plain ? [] : entries) {
      for (const { loc } of Object.values(entry)) {
        const place = loc === undefined ? null : `${name} ${loc[1]}`
        const sealed = place === null || this.#opened.get(place) ? null : sealedAt(this.blocks, ring, name, loc as Location)
        if (place !== null && sealed !== null) found.set(place, sealed)
      }
    }
    const opened = await (this.environment.offloading ?? onThisThread).openAll([...found.values()])
    for (const [i, place] of [...found.keys()].entries()) {
      const one = opened[i]
      if (!one) continue
      noteHash(one.data, one.hash)
      this.#opened.set(place, one.data)
    }
  }

  get revision(): number {
    return this.#revision
  }

  entry(name: string): Entry {
    return this.entries.get(name) ?? {}
  }

  /** The state with this device's own counter; no pair is drawn yet for writes since the last publish. */
  get state(): State {
    const seen = new Map(Object.entries(this.#kept.seen))
    const { id } = this.device
    if (this.#kept.n > (seen.get(id)?.n ?? 0)) seen.set(id, { n: this.#kept.n, r: '' })
    return { entries: this.#entries, seen }
  }

  /** Tell whether an id belongs to the person of this device. */
  readonly isMine: IsMine = id => {
    if (id === this.device.id || this.ring === null) return true
    const { persons } = this.ring.said
    const me = persons.get(this.device.id) ?? this.#person
    return me !== undefined && persons.get(id) === me
  }

  /** The person of this device while the ring does not name it: that of the key that opened the vault. */
  #person: string | undefined

  /** The plain bytes at a location of an entry. */
  readonly opened = (name: string, loc: Location): Bytes | null => {
    if (this.ring === null) return null
    const place = `${name} ${loc[1]}`
    let data = this.#opened.get(place)
    if (data === undefined) {
      data = openedObject(this.blocks, this.ring, name, loc)
      this.#opened.set(place, data)
      if (data === null) this.#shut.add(place)
    }
    return data
  }

  /** One memory as shown to this person. `name`: of its entry. */
  view(name: string): ShownView {
    const entry = this.entry(name)
    const held = this.#views.get(name)
    if (held !== undefined && held.entry === entry) return held.view
    const view = this.viewOfSome(name, entry)
    this.#views.set(name, { entry, view })
    if (view.notFetched.length > 0 || Object.keys(entry).length > 1) this.#unsure.add(name)
    return view
  }

  /** The view of a memory with these values only. */
  viewOfSome(name: string, entry: Entry): ShownView {
    const said = readName(name)
    return shownView(said.kind === 'm' ? said.key : '', name, entry, this.isMine, this.opened)
  }

  /** A text of an entry by the hash of its bytes; null if it is not here. */
  textOf(name: string, body: string): Bytes | null {
    return fetcherOf(name, this.entry(name), this.opened)(body)
  }

  /** How often a memory was used on this device. */
  use(name: string): Use | undefined {
    const found = this.#used.get(name) ?? this.#kept.uses[name]
    // After a clock that was ahead is corrected, no memory stays fresh until that day.
    return found !== undefined && found[1] > this.#today ? [found[0], 0, found[2]] : found
  }

  /** Uses before today, and the last day of these: lists are ordered by this, so the order is the same all day. */
  usedBefore(name: string): readonly [times: number, day: number] {
    const [times, day, , timesBefore = 0, dayBefore = 0] = this.use(name) ?? [0, 0, 0]
    return day === this.#today ? [timesBefore, dayBefore] : [times, day]
  }

  get #today(): number {
    return Math.floor(this.environment.now() / DAY_MS)
  }

  get uses(): Readonly<Record<string, Use>> {
    return { ...this.#kept.uses, ...Object.fromEntries(this.#used) }
  }

  /** Whether a memory was used since the last change. */
  get hasCounted(): boolean {
    return this.#used.size > 0
  }

  /** Record a use of these memories now. It is stored with the next change, and losing it does no harm. */
  count(names: Iterable<string>): void {
    for (const name of names) {
      const [times, , untold] = this.use(name) ?? [0, 0, 0]
      this.#used.set(name, [times + 1, this.#today, untold + 1, ...this.usedBefore(name)])
    }
  }

  /** Load what other tabs stored; true if anything. */
  async refresh(): Promise<boolean> {
    const { revision, snapshot, changes } = await this.storage.load(this.#revision)
    if (revision === this.#revision) return false
    if (snapshot !== null) {
      this.#take(JSON.parse(fromUtf8(await this.device.rows.open(snapshot))) as Kept, true)
      this.#changes = 0
    }
    for (const row of changes) this.#take(JSON.parse(fromUtf8(await this.device.rows.open(row))) as Partial<Kept>, false)
    this.#changes += changes.length
    this.#revision = revision
    const cids = await this.storage.cids()
    for (const cid of cids) this.#durable.add(cid)
    const absent = cids.filter(cid => this.blocks.peek(cid) === null)
    for (const [cid, data] of await this.storage.blocks(absent)) this.blocks.add(cid, data)
    if (absent.length > 0) this.#lookAgain()
    return true
  }

  /** Store a change, durable when the promise resolves. Only inside the lock for writes, after `refresh`. */
  async change(update: Partial<Kept>, blocks: readonly Block[] = []): Promise<void> {
    const change = this.#used.size === 0 ? update : { ...update, uses: { ...Object.fromEntries(this.#used), ...update.uses } }
    this.#used.clear()
    const row = await this.device.rows.seal(utf8(JSON.stringify(change)))
    this.#revision = await this.storage.append(row, blocks)
    this.#hold(blocks)
    this.#take(change, false)
    this.#changes++
    if (this.#changes > MOST_CHANGES) await this.snapshot()
  }

  /** Store a snapshot of everything. `gone`: blocks that are no longer needed. */
  async snapshot(blocks: readonly Block[] = [], gone: readonly string[] = []): Promise<void> {
    const all: Kept = { ...this.#kept, entries: Object.fromEntries(this.#entries) }
    const row = await this.device.rows.seal(utf8(JSON.stringify(all)))
    this.#revision = await this.storage.replace(row, blocks, gone)
    this.#hold(blocks)
    for (const cid of gone) {
      this.blocks.remove(cid)
      this.#durable.delete(cid)
      this.whole.delete(cid)
    }
    this.#changes = 0
  }

  /** Blocks that are here and not stored yet, such as those of a sync that failed. */
  unkept(): Block[] {
    return [...this.blocks.cids()].filter(cid => !this.#durable.has(cid)).map((cid): Block => [cid, this.blocks.peek(cid) as Bytes])
  }

  /** Whether so many changes were made since the last snapshot that the next opening would be slow. */
  get isLong(): boolean {
    return this.#changes > MOST_CHANGES / 4
  }

  #hold(blocks: readonly Block[]): void {
    for (const [cid, data] of blocks) {
      this.blocks.add(cid, data)
      this.#durable.add(cid)
    }
    if (blocks.length > 0) this.#lookAgain()
  }

  /** Blocks arrived: check again what lacked one. A memory with one text that is here stays as it is. */
  #lookAgain(): void {
    for (const name of this.#unsure) this.#views.delete(name)
    for (const place of this.#shut) this.#opened.delete(place)
    this.#unsure.clear()
    this.#shut.clear()
  }

  #take(change: Partial<Kept>, isAll: boolean): void {
    const { entries = {}, records = {}, placed = {}, others = {}, uses = {}, ring, ...rest } = change
    if (isAll) this.#entries = new Map()
    for (const [name, entry] of Object.entries(entries)) {
      if (Object.keys(entry).length > 0) this.#entries.set(name, entry)
      else this.#entries.delete(name)
    }
    const before = isAll ? NOTHING : this.#kept
    this.#kept = {
      ...before,
      ...rest,
      entries: {},
      ring: ring === undefined ? before.ring : ring,
      records: { ...before.records, ...records },
      placed: { ...before.placed, ...placed },
      others: { ...before.others, ...others },
      uses: { ...before.uses, ...uses }
    }
    if (ring !== undefined) {
      // Authorship and readability may have changed. What opened under a key that is still here stays open.
      const before = this.ring
      this.#ring = ring === null ? null : Ring.ofKept(ring)
      this.#ahead = null
      this.#views = new Map()
      const now = new Set(this.#ring?.readable.map(key => key.id))
      if (before === null || !before.readable.every(key => now.has(key.id))) this.#opened = new Map()
      for (const place of this.#shut) this.#opened.delete(place)
      this.#shut.clear()
    }
  }

  record(name: string): Bytes | null {
    const text = this.#kept.records[name]
    return text === undefined ? null : fromBase64url(text)
  }
}

export const recordsText = (records: ReadonlyMap<string, Bytes>): Record<string, string> =>
  Object.fromEntries([...records].map(([name, bytes]) => [name, base64url(bytes)]))
