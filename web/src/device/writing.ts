/** The writes of one transaction: each new text gets a dot of this device and replaces only what its writer was shown (FORMAT.md 5). */

import { base64url, byCodePoints, type Bytes, canonical, fromHex, hex, need, sha256, utf8 } from '../core/bytes.ts'
import { cidOfHash, RAW } from '../core/cid.ts'
import { CLOCK_ZERO, nextClock } from '../core/clock.ts'
import type { EpochKey } from '../core/sealed.ts'
import { type Entry, type Location, readDot, readName, type Value, valueMessage } from '../core/state.ts'
import { instant, isEvent, lineOf, type TimelineEvent } from '../core/timeline.ts'
import { authorOf, inViewOrder, nextBases, ofWhenReplacing, shortHash } from '../core/successors.ts'
import type { Block } from '../sync/provider.ts'
import { MemoryError } from './errors.ts'
import type { Kept, Replica } from './replica.ts'

const MOST_DOTS = 4
const MOST_LINE = 65_536
/** Maximum number of memories that one event of uses names. */
const MOST_TOLD = 500
const DAY_MS = 86_400_000
const SEGMENT = 8188

export class Writing {
  #n: number
  #clock: string
  #events: number
  readonly #key: EpochKey
  readonly #changes = new Map<string, Entry>()
  readonly #blocks: Block[] = []
  readonly #texts = new Map<string, Bytes>()
  readonly #published: number
  #flushed: Pick<Kept, 'uses' | 'told'> | null = null

  constructor(readonly replica: Replica) {
    const { kept, ring, device } = replica
    need(ring !== null, 'none', 'this device has not read its memory yet: sync first')
    const key = ring.sealing
    if (key === null || ring.plain) {
      throw new MemoryError('member', 'writing is not possible now', ring.plain ? 'This client only reads plain vaults.' : 'A device with the wallet must sync once.')
    }
    this.#key = key
    this.#n = kept.n
    this.#clock = kept.clock
    this.#events = kept.events
    this.#published = kept.seen[device.id]?.n ?? 0
  }

  entry(name: string): Entry {
    return this.#changes.get(name) ?? this.replica.entry(name)
  }

  /** Write a text under an entry's name, replacing these dots; returns the new dot. `promoted`: a person approved it as their own. */
  async put(name: string, body: Bytes, replaces: readonly string[], { of = '', promoted = false } = {}): Promise<string> {
    const said = readName(name)
    await this.#openScope(said.scope, said.kind === 'c')
    const entry = this.entry(name)
    if (said.kind !== 'm') return this.#add(name, body, replaces, {}, this.#tick())
    const whose = of !== '' || promoted ? of : this.#whose(entry, body, replaces)
    return this.#add(name, body, replaces, { ...this.#bases(entry, replaces), ...(whose === '' ? {} : { of: whose }) }, this.#tick())
  }

  /** Write an imported text next to the existing ones, with clock zero and without bases. */
  async writeAlternative(name: string, body: Bytes, of = ''): Promise<string> {
    const said = readName(name)
    await this.#openScope(said.scope, said.kind === 'c')
    return this.#add(name, body, [], of === '' ? {} : { of }, CLOCK_ZERO)
  }

  /** Write that the person forgot an entry. */
  forget(name: string, replaces: readonly string[]): Promise<string> {
    return this.#set(name, replaces, { b: [], body: null, h: this.#tick(), kind: 'forgotten' })
  }

  /** Delete the values with these dots without a trace; concurrent writes of other devices stay. */
  remove(name: string, replaces: readonly string[]): void {
    this.#changes.set(name, Object.fromEntries(Object.entries(this.entry(name)).filter(([dot]) => !replaces.includes(dot))))
  }

  /** Append an event of this device. */
  async note(type: string, data: Readonly<Record<string, unknown>>, scope = ''): Promise<TimelineEvent> {
    const taken = ['ts', 'type', 'id'].filter(name => Object.hasOwn(data, name))
    if (taken.length > 0) throw new MemoryError('usage', `${taken.join(', ')} of an event cannot be given as data`)
    if (type.startsWith('ipfsmem-')) throw new MemoryError('usage', 'types of events that begin with ipfsmem- are used by the program itself')
    const ts = new Date(this.replica.environment.now()).toISOString()
    const event = { ...data, ts, type, id: `${this.replica.device.id}-${++this.#events}` } as TimelineEvent
    need(isEvent(event), 'format', 'an event holds what JSON can say, and no more')
    await this.#append(event, scope)
    return event
  }

  /** Once a day, with a write to a scope: report which of its memories were used before today, and how often, most used first. */
  async tellUses(scope: string): Promise<void> {
    const { replica } = this
    const today = Math.floor(replica.environment.now() / DAY_MS)
    if (replica.kept.told === today) return
    const used = Object.entries(replica.uses).filter(([name, [, day, untold]]) => untold > 0 && day < today && readName(name).scope === scope)
    if (used.length === 0) return
    const most = used.sort(([a, [, , many]], [b, [, , few]]) => few - many || byCodePoints(a, b)).slice(0, MOST_TOLD)
    const counts = Object.fromEntries(most.map(([name, [, , untold]]) => [name.slice(name.lastIndexOf('/') + 1), untold]))
    const ts = new Date(replica.environment.now()).toISOString()
    await this.#append({ counts, ts, type: 'used', id: `${replica.device.id}-${++this.#events}` } as TimelineEvent, scope)
    this.#flushed = { uses: Object.fromEntries(most.map(([name, [times, day]]) => [name, [times, day, 0] as const])), told: today }
  }

  /** Append an imported event under its own id. */
  lineOfOthers(event: TimelineEvent, scope = ''): Promise<void> {
    return this.#append(event, scope)
  }

  async #append(event: TimelineEvent, scope: string): Promise<void> {
    const line = utf8(`${lineOf(event)}\n`)
    if (line.length - 1 > MOST_LINE) throw new MemoryError('limit', 'an event has at most 64 KiB')
    await this.#openScope(scope, false)
    const day = new Date(instant(event.ts) ?? 0).toISOString().slice(0, 10)
    const { name, text, replaces } = this.#lastSegment(day, scope, line.length)
    const longer = new Uint8Array(text.length + line.length)
    longer.set(text)
    longer.set(line, text.length)
    await this.#add(name, longer, replaces, {}, this.#tick())
  }

  /** Return the segment for a line: the last one of the day, or the next if that is too long or not here. */
  #lastSegment(day: string, scope: string, more: number): { name: string; text: Bytes; replaces: readonly string[] } {
    const at = (i: number): string => ['t', ...(scope === '' ? [] : [scope]), day, this.replica.device.id, i].join('/')
    let i = 0
    while (Object.keys(this.entry(at(i + 1))).length > 0) i++
    const entry = this.entry(at(i))
    const dots = Object.keys(entry)
    if (dots.length === 0) return { name: at(i), text: new Uint8Array(), replaces: [] }
    const [value] = Object.values(entry)
    const text = dots.length === 1 && value?.loc !== undefined ? this.text(at(i), value) : null
    if (text !== null && text.length + more <= SEGMENT) return { name: at(i), text, replaces: dots }
    return { name: at(i + 1), text: new Uint8Array(), replaces: [] }
  }

  /** Return the bytes of a value, also of this transaction. */
  text(name: string, value: Value): Bytes | null {
    const made = this.#texts.get(value.body ?? '')
    if (made !== undefined) return made
    const data = value.loc === undefined ? null : this.replica.opened(name, value.loc)
    return data !== null && hex(sha256(data)) === value.body ? data : null
  }

  #tick(): string {
    this.#clock = nextClock(this.#clock, this.replica.environment.now())
    return this.#clock
  }

  /** Create a scope with its first text; refuse a forgotten one. */
  async #openScope(scope: string, isCard: boolean): Promise<void> {
    if (scope === '' || isCard) return
    const card = this.entry(`c/${scope}`)
    const values = Object.values(card)
    if (values.some(one => one.kind === 'forgotten')) {
      throw new MemoryError('not found', `the scope ${scope} is forgotten, so nothing can be written there`, 'Restore it first.')
    }
    if (values.length === 0) await this.writeAlternative(`c/${scope}`, utf8(canonical({ ids: [], into: null, kind: 'workspace', title: scope, v: 1 })))
  }

  /** Return `b` and `base` of a text that replaces these dots. */
  #bases(entry: Entry, replaces: readonly string[]): { b?: readonly string[]; base?: Location } {
    const isPublished = (dot: string): boolean => {
      const { dev, n } = readDot(dot)
      return dev !== this.replica.device.id || n <= this.#published
    }
    const known = new Set(Object.entries(entry).flatMap(([dot, value]) => (value.body !== null && isPublished(dot) ? [shortHash(value.body)] : [])))
    const { b, base } = nextBases(inViewOrder(entry, replaces).map(([, value]) => value), hash => known.has(hash))
    return b.length === 0 ? {} : { b, ...(base === null ? {} : { base }) }
  }

  /** Return the author of a text, as far as this device knows (5.2); '' for the writer. */
  #whose(entry: Entry, body: Bytes, replaces: readonly string[]): string {
    const { isMine } = this.replica
    const hash = hex(sha256(body))
    const whose = ofWhenReplacing(entry, replaces, hash, isMine)
    if (whose !== null) return whose
    for (const [dot, value] of Object.entries(entry)) if (value.body === hash) return authorOf(dot, value, isMine)
    return this.replica.kept.others[hash] ?? ''
  }

  async #add(name: string, body: Bytes, replaces: readonly string[], more: { b?: readonly string[]; base?: Location; of?: string }, h: string): Promise<string> {
    const { type, ctx } = readName(name)
    const stored = this.#key.seal(type, ctx, body)
    const digest = sha256(stored)
    this.#blocks.push([cidOfHash(RAW, digest).text, stored])
    const hash = hex(sha256(body))
    this.#texts.set(hash, body)
    const loc: Location = [this.#key.id, hex(digest), stored.length]
    return this.#set(name, replaces, { b: [], body: hash, h, kind: 'live', loc, ...more })
  }

  async #set(name: string, replaces: readonly string[], value: Value): Promise<string> {
    const { device, ring } = this.replica
    const kept = Object.entries(this.entry(name)).filter(([dot]) => !replaces.includes(dot))
    if (kept.filter(([dot]) => dot.startsWith(device.id)).length >= MOST_DOTS) {
      throw new MemoryError('limit', `${readName(name).ctx} has four texts of this device that do not know of each other`, 'Resolve the conflict first.')
    }
    const dot = `${device.id}-${++this.#n}`
    const s = base64url(await device.signer.sign(valueMessage(name, dot, value, (ring as NonNullable<typeof ring>).tag)))
    this.#changes.set(name, { ...Object.fromEntries(kept), [dot]: { ...value, s } })
    return dot
  }

  /** Return what to store of this transaction. */
  done(): { change: Partial<Kept>; blocks: readonly Block[] } | null {
    if (this.#changes.size === 0) return null
    const entries = Object.fromEntries(this.#changes)
    return { change: { entries, n: this.#n, clock: this.#clock, events: this.#events, ...this.#flushed }, blocks: this.#blocks }
  }
}

/** Return the CID of a location's block. */
export const blockOf = (loc: Location): string => cidOfHash(RAW, fromHex(loc[1])).text

/** Run one write at a time in all tabs: load what others stored, do the work, and store its writes durably. */
export function writing<T>(replica: Replica, work: (change: Writing) => Promise<T>): Promise<T> {
  return replica.storage.exclusively('write', async () => {
    await replica.refresh()
    const change = new Writing(replica)
    const out = await work(change)
    const done = change.done()
    if (done !== null) await replica.change(done.change, done.blocks)
    return out
  })
}
