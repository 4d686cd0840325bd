/**
 * Stored sessions of one scope, and of those that redirect to it: list, read, search, forget. A session consists of all own parts,
 * concurrent ones and those of other devices too (FORMAT.md 5.1). Sessions stored on one other device only are not among them.
 */

import { byCodePoints, type Bytes, unlessRefused, utf8 } from '../core/bytes.ts'
import { clockMs } from '../core/clock.ts'
import { fieldOf, parseFile, renderFile } from '../core/memory_file.ts'
import { type Line, lineOf, type Place, type Placed, placedItems, partsOf } from '../core/session_items.ts'
import { isSessionPart, sessionToken } from '../core/sessions.ts'
import type { Value } from '../core/state.ts'
import { fetcherOf, isOwnWord } from '../core/views.ts'
import { approvalOf, asMarkdown, coveredIn, isImportMark, pendingOf, previewOf, type PlacedMessage, titleOf, tokensIn, conversationOf, type Conversation, unapprovedOf } from '../life/conversation.ts'
import { searched } from '../life/session_search.ts'
import type { Session, SessionHit, SessionLine } from '../results.ts'
import { localDate, localDay } from './days.ts'
import { MemoryError } from './errors.ts'
import { entryName, headOf, notFetched, type Shown, tokenHash } from './shown.ts'
import type { Writing } from './writing.ts'

/** The form of a part's key: its session, its device, its number. */
const PART = /^session-(.+)-([0-9a-f]{16})-(0|[1-9][0-9]{0,5})$/
/** Prefix of the sessions that hold the history of one memory: not conversations, so lists leave them out. */
const HISTORY = 'ipfsmem-history/'
const MOST_MESSAGES = 1000
const MOST_HITS = 1000

type Part = { readonly name: string; readonly device: string; readonly dots: readonly string[]; readonly lines: readonly Line[] }

/**
 * The sessions of one scope and of those that redirect to it. A session in several scopes is shown as one, in the order of its items' times
 * (FORMAT.md 5.1).
 */
export class AllSessions {
  readonly #parts: readonly Sessions[]

  /** `scopes`: that scope first. */
  constructor(
    readonly shown: Shown,
    scopes: readonly string[]
  ) {
    this.#parts = scopes.map(scope => new Sessions(shown, scope))
  }

  /** List the sessions with a live part by this person's devices, last written first; at most `limit`, and the number of older ones. */
  list(limit = Infinity): { sessions: SessionLine[]; older: number } {
    const all = this.#newest()
    const sessions = all.slice(0, limit).map(([session, { h, scope }]): SessionLine => {
      const found = conversationOf(this.#entries(session))
      return { session, scope, title: titleOf(found), preview: previewOf(found), messages: found.messages.length, changed: clockMs(h), own: found.pending.size === 0 }
    })
    return { sessions, older: all.length - sessions.length }
  }

  /** Return one session with its last messages; null if absent. */
  read(session: string, last: number): Session | null {
    if (!Number.isInteger(last) || last < 0 || last > MOST_MESSAGES) throw new MemoryError('usage', `last is 0 to ${MOST_MESSAGES}, not ${last}`)
    const found = this.#conversation(session)
    if (found === null) return null
    const { messages, summary } = found
    const shown = last === 0 ? [] : messages.slice(-last)
    return {
      session, title: titleOf(found), preview: previewOf(found), messages: messages.length, tokens: tokensIn(found), devices: new Set(messages.map(one => one.place[1])).size,
      began: messages[0]?.place[0] ?? null, changed: messages.at(-1)?.place[0] ?? null, covered: coveredIn(found), summary: summary?.text ?? '', summaryBy: summary?.by ?? '', summaryOwn: !found.isSummaryPending, own: found.pending.size === 0,
      seen: this.#seen(session), before: messages.length - shown.length, said: shown.map(({ place: [at], message: { role, text, tools } }, n) => ({ role, at, text, tools, own: !found.pending.has((shown[n] as PlacedMessage).place) }))
    }
  }

  /** Return a whole session as Markdown, or its items as programs wrote them; null if absent. */
  text(session: string, format: 'markdown' | 'json'): string | null {
    const found = this.#conversation(session)
    if (found === null) return null
    return format === 'json' ? JSON.stringify(found.messages.map(one => (found.pending.has(one.place) ? { ...one.item, own: false } : one.item))) : asMarkdown(found).toWellFormed()
  }

  /** Return the messages that share a word with the query, best first. Summaries are not searched: the messages that they cover are. */
  search(query: string, limit: number): SessionHit[] {
    if (query.trim() === '') throw new MemoryError('usage', 'the question is empty')
    if (!Number.isInteger(limit) || limit < 1 || limit > MOST_HITS) throw new MemoryError('usage', `limit is 1 to ${MOST_HITS}, not ${limit}`)
    const found = new Map(this.#newest().map(([session]) => [session, conversationOf(this.#entries(session))]))
    return searched(found, query, limit, localDay(this.shown.replica.environment.now()), localDay)
  }

  /** Forget all known parts, in a write. False if absent. */
  async forget(change: Writing, session: string, reason: string, seen: string | undefined): Promise<boolean> {
    if (session.startsWith(HISTORY)) return false
    const all = this.#parts.flatMap(one => one.parts(session))
    if (seen !== undefined && all.length > 0) this.#needSeen(session, seen)
    let isGone = false
    for (const one of this.#parts) isGone = (await one.forget(change, session)) || isGone
    if (isGone) await change.note('forgot', { session, ...(reason === '' ? {} : { reason }) }, (this.#parts[0] as Sessions).scope)
    return isGone
  }

  /** Approve all imported messages of a session, in a write; returns their number. `seen`: as `read` returned it. */
  async approve(change: Writing, session: string, seen: string | undefined): Promise<number> {
    if (seen !== undefined) this.#needSeen(session, seen)
    let approved = 0
    for (const one of session.startsWith(HISTORY) ? [] : this.#parts) approved += await one.approve(change, session)
    if (approved === 0) throw new MemoryError('not found', `no pending messages in a session ${session.slice(0, 60)}`)
    return approved
  }

  #entries(session: string): Placed[] {
    const [first = [], ...below] = this.#parts.map(one => one.entries(session))
    return below.every(one => one.length === 0) ? first : [first, ...below].flat().sort((one, other) => byPlace(one.place, other.place))
  }

  #conversation(session: string): Conversation | null {
    return this.#parts.map(one => one.has(session)).includes(true) ? conversationOf(this.#entries(session)) : null
  }

  #seen(session: string): string {
    return tokenHash(this.#parts.flatMap(one => one.parts(session).flatMap(part => part.dots)))
  }

  #needSeen(session: string, seen: string): void {
    if (this.#seen(session) !== seen) throw new MemoryError('changed', `the session ${session.slice(0, 60)} changed since it was read`, 'Read it again.')
  }

  /** Return each session with the clock of its last text and the first scope that has it, newest first. */
  #newest(): [session: string, { h: string; scope: string }][] {
    const newest = new Map<string, { h: string; scope: string }>()
    for (const one of this.#parts) {
      for (const [session, h] of one.newest()) {
        const known = newest.get(session)
        newest.set(session, { h: known !== undefined && known.h > h ? known.h : h, scope: known?.scope ?? one.scope })
      }
    }
    return [...newest].sort(([one, a], [other, b]) => byCodePoints(b.h, a.h) || byCodePoints(other, one))
  }
}

const byPlace = (one: Place, other: Place): number => one[0] - other[0] || byCodePoints(one[1], other[1]) || one[2] - other[2]

/** The sessions of exactly one scope, at one point in time. */
export class Sessions {
  readonly #isOwn: (dot: string, value: Value) => boolean
  #held: Map<string, string[]> | null = null

  constructor(
    readonly shown: Shown,
    readonly scope: string
  ) {
    this.#isOwn = isOwnWord(shown.replica.isMine)
  }

  /**
   * All sessions with their items, by the token in the keys of their parts; and the number of sessions with a part that is not on this
   * device.
   */
  all(): { sessions: { token: string; session: string; entries: Placed[] }[]; missing: number } {
    const sessions: { token: string; session: string; entries: Placed[] }[] = []
    let missing = 0
    for (const [token, keys] of [...this.#keys].sort(([a], [b]) => byCodePoints(a, b))) {
      try {
        for (const session of new Set(keys.map(key => this.#nameOf(key)))) {
          if (session !== null && !session.startsWith(HISTORY)) sessions.push({ token, session, entries: this.entries(session) })
        }
      } catch (error) {
        if (!(error instanceof MemoryError) || error.kind !== 'not found') throw error
        missing++
      }
    }
    return { sessions, missing }
  }

  /** All items in order, marks included. Refused if a part is not fetched: an item would be missing in between. */
  entries(session: string): Placed[] {
    return placedItems(this.parts(session))
  }

  /** Tell whether it is a session with a part here. */
  has(session: string): boolean {
    return !session.startsWith(HISTORY) && this.parts(session).some(one => this.#nameOf(keyOf(one.name)) === session)
  }

  /** Forget all known parts, in a write. False if absent. */
  async forget(change: Writing, session: string): Promise<boolean> {
    let isGone = false
    for (const { name } of this.parts(session)) {
      const entry = change.entry(name)
      const texts = Object.entries(entry).filter(([, value]) => value.body !== null)
      if (!texts.some(([dot, value]) => this.#isOwn(dot, value))) continue
      await change.forget(name, texts.map(([dot]) => dot))
      isGone = true
    }
    return isGone
  }

  /** Approve all imported messages of a session, in a write; returns their number. */
  async approve(change: Writing, session: string): Promise<number> {
    const parts = this.parts(session)
    const entries = placedItems(parts)
    const pending = pendingOf(entries).size
    if (pending === 0) return 0
    const { environment, device } = this.shown.replica
    const own = parts.filter(one => one.device === device.id).map(one => Number(one.name.slice(one.name.lastIndexOf('-') + 1)))
    const at = parts.flatMap(one => one.lines).reduce((last, line) => Math.max(last, line.at + 1), environment.now())
    const key = `session-${sessionToken(session)}-${device.id}-${Math.max(-1, ...own) + 1}`
    const name = entryName(key, this.scope)
    const fields: [string, string][] = [['name', `Session ${session}`], ['type', 'session'], ['updated', localDate(environment.now())], ['session', session]]
    await change.put(name, utf8(renderFile({ fields, body: JSON.stringify({ at, item: approvalOf(entries) }) })), this.#own(key).map(([dot]) => dot))
    return pending
  }

  /** Refuse to replace or remove a part that records which messages of its session are pending: without it they would be approved. */
  needReplaceable(key: string): void {
    let session: string | null = null
    try {
      session = this.#nameOf(key)
      const parts = session === null ? [] : this.parts(session)
      const marks = parts.filter(one => keyOf(one.name) === key).flatMap(one => one.lines)
      if (session === null || !marks.some(line => 'item' in line && isImportMark(line.item)) || pendingOf(placedItems(parts)).size === 0) return
    } catch (error) {
      if (!(error instanceof MemoryError) || session === null) return // not fetched, or damaged: then it may be removed, unless another part is in the same state
    }
    throw new MemoryError('usage', `${key} says which messages of the session ${(session as string).slice(0, 60)} are pending; without it agents are given them`, 'Forget the session as a whole.')
  }

  /**
   * Refuse texts under the keys of parts that would make pending messages of their session approved: only a person approves. `before`:
   * others of the same import.
   */
  needNoApproval(coming: Coming, before: readonly Coming[] = []): void {
    const both = this.#with([...before, coming], coming)
    if (both === null) return
    const pending = namesOf(unapprovedOf(both.left))
    const stay = namesOf(both.left.map(one => one.place))
    if ([...namesOf(unapprovedOf(both.here))].some(one => stay.has(one) && !pending.has(one))) throw new MemoryError('usage', `${coming.key} would approve imported messages, which is a person's decision`, 'Approve them with: ipfsmem approve.')
  }

  /**
   * Refuse an earlier text that alone would restore imported messages as approved. `then`: the positions of those that were pending in a
   * version with it; null if unknown.
   */
  needRestorable(key: string, data: Bytes, then: ReadonlySet<string> | null): void {
    const coming = { key, data, isBeside: false }
    const both = this.#with([coming], coming)
    if (both === null) return
    const [here, pending] = [namesOf(both.here.map(one => one.place)), namesOf(unapprovedOf(both.left))]
    const back = [...namesOf(both.left.map(one => one.place))].filter(one => !here.has(one) && !pending.has(one))
    if (then === null ? back.length > 0 : back.some(one => then.has(one))) {
      throw new MemoryError('usage', `${key} holds imported messages that nobody approved, as far as is known here, and alone it would restore them as approved`, 'Restore the later parts of the session first.')
    }
  }

  /** Return the items of the session to which a text would belong, now and with the new ones; null for a text of no session. */
  #with(all: readonly Coming[], { key, data }: Coming): { here: Placed[]; left: Placed[] } | null {
    const session = sessionIn(key, data)
    if (session === null) return null
    const parts = this.parts(session)
    const ours = all.filter(one => sessionIn(one.key, one.data) === session)
    const gone = new Set(ours.filter(one => !one.isBeside).map(one => one.key))
    return { here: placedItems(parts), left: placedItems([...parts.filter(one => !gone.has(keyOf(one.name))), ...ours.map(asPart)]) }
  }

  /** Each session with the clock of its last text. */
  newest(): ReadonlyMap<string, string> {
    const newest = new Map<string, string>()
    for (const key of [...this.#keys.values()].flat()) {
      const session = this.#nameOf(key)
      if (session === null || session.startsWith(HISTORY)) continue
      const h = this.#own(key).map(([, value]) => value.h).reduce((a, b) => (a > b ? a : b))
      if (h > (newest.get(session) ?? '')) newest.set(session, h)
    }
    return newest
  }

  /** The keys with the form of a part's, by the token of their session. */
  get #keys(): ReadonlyMap<string, readonly string[]> {
    if (this.#held === null) {
      this.#held = new Map()
      for (const { key } of this.shown.isForgotten(this.scope) ? [] : this.shown.memories([this.scope])) {
        const token = PART.exec(key)?.[1]
        if (token !== undefined) this.#held.set(token, [...(this.#held.get(token) ?? []), key])
      }
    }
    return this.#held
  }

  #own(key: string): [string, Value][] {
    return Object.entries(this.shown.replica.entry(entryName(key, this.scope))).filter(([dot, value]) => this.#isOwn(dot, value))
  }

  #data(name: string, dot: string, value: Value): Bytes | null {
    return value.body === null ? null : fetcherOf(name, { [dot]: value }, this.shown.replica.opened)(value.body)
  }

  /** Return the session of a key with the form of a part's; null if it is not a part, is forgotten, or is a text of others. */
  #nameOf(key: string): string | null {
    const data = this.#shown(key)
    if (data === null) return null
    const file = headOf(data)
    const session = fieldOf(file, 'session')
    return isSessionPart(key, fieldOf(file, 'type'), session) ? session : null
  }

  /** Return the own text under a key, also one that was extended while another device forgot it. */
  #shown(key: string): Bytes | null {
    const name = entryName(key, this.scope)
    const view = this.shown.view(name)
    if (view.shown !== null) return view.own ? view.shown : null
    if (view.notFetched.length > 0) throw notFetched(name)
    const own = this.#own(key)
    const until = forgottenUntil(own)
    for (const [dot, value] of own) {
      const data = this.#data(name, dot, value)
      if (data !== null && [...linesIn(data).values()].some(line => line.at > until)) return data
    }
    return null
  }

  /** The parts of a session that this person's devices wrote. */
  parts(session: string): Part[] {
    const form = unlessRefused(() => partsOf(session))
    if (form === null) throw new MemoryError('usage', 'invalid session name: 1-256 characters, no control characters')
    const found: Part[] = []
    for (const key of this.#keys.get(sessionToken(session)) ?? []) {
      const name = entryName(key, this.scope)
      const own = this.#own(key)
      if (own.length === 0) continue
      const texts = new Map<string, Line>()
      let isOurs = true
      for (const [dot, value] of own) {
        if (value.body === null) continue
        const data = this.#data(name, dot, value)
        if (data === null) throw notFetched(name)
        isOurs &&= fieldOf(headOf(data), 'session') === session
        for (const [text, line] of linesIn(data)) texts.set(text, line)
      }
      const until = forgottenUntil(own)
      const lines = isOurs ? [...texts.values()].filter(line => line.at > until) : []
      found.push({ name, device: form.exec(key)?.[1] as string, dots: own.map(([dot]) => dot), lines })
    }
    return found
  }
}

/** A text to store under the key of a part; `isBeside`: existing texts stay. */
export type Coming = { readonly key: string; readonly data: Bytes; readonly isBeside: boolean }

/** Tell whether a key has the form of a part's. */
export const mayBePart = (key: string): boolean => PART.test(key)

/** Return the session of which a text under a key is a part; null if it is not one. */
function sessionIn(key: string, data: Bytes): string | null {
  const file = mayBePart(key) ? unlessRefused(() => headOf(data)) : null
  const session = file === null ? '' : fieldOf(file, 'session')
  return file !== null && isSessionPart(key, fieldOf(file, 'type'), session) ? session : null
}

/**
 * Tell whether the last line of a part is not JSON, as in a truncated file: the missing lines may have recorded which messages are pending.
 */
export function isCutOff(key: string, data: Bytes): boolean {
  if (sessionIn(key, data) === null) return false
  const line = unlessRefused(() => parseFile(data))?.body.trimEnd().split('\n').at(-1) ?? ''
  if (line === '') return false
  try {
    JSON.parse(line)
    return false
  } catch {
    return true
  }
}

const asPart = ({ key, data }: Omit<Coming, 'isBeside'>): Omit<Part, 'name' | 'dots'> => ({ device: PART.exec(key)?.[2] as string, lines: [...linesIn(data).values()] })

/** The positions, in texts of parts of one session, of imported messages that are not approved. */
export const unapprovedIn = (texts: readonly (readonly [key: string, data: Bytes])[]): ReadonlySet<string> => namesOf(unapprovedOf(placedItems(texts.map(([key, data]) => asPart({ key, data })))))

const namesOf = (places: Iterable<Place>): ReadonlySet<string> => new Set([...places].map(place => place.join(' ')))

const keyOf = (name: string): string => name.slice(name.lastIndexOf('/') + 1)

/** The time up to which lines were forgotten, from a forget next to the texts; -1 without one. */
const forgottenUntil = (own: readonly [string, Value][]): number => own.reduce((last, [, value]) => (value.kind === 'forgotten' ? Math.max(last, clockMs(value.h)) : last), -1)

/** The valid lines of a part, by their written form. */
function linesIn(data: Bytes): Map<string, Line> {
  const found = new Map<string, Line>()
  for (const text of (unlessRefused(() => parseFile(data)) ?? { body: '' }).body.split('\n')) {
    const line = lineOf(text)
    if (line !== null) found.set(text, line)
  }
  return found
}
