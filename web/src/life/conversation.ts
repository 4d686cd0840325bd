/**
 * A session as its title, its last summary and its messages; and as text: its preview, and all of it as Markdown.
 *
 * A title and a summary are items of their own, marks `{"ipfsmem": {...}}`, and not messages. Of several the last is valid.
 */

import { byteLength, isObject } from '../core/bytes.ts'
import type { Placed, Place } from '../core/session_items.ts'
import { type Item, isRequest, type Message, readMessage } from './messages.ts'
import { linesOf, split, trim, trimEnd } from '../core/white.ts'

const MARK = 'ipfsmem'
/** Characters of a preview, and of a title made from a message. */
const PREVIEW = 80
const WHO: Readonly<Record<string, string>> = { user: 'User', assistant: 'Assistant', tool: 'Tool', system: 'System' }
const PENDING = ' (imported, not approved)'
/** The first moment after the year 9999. */
export const LAST = 253_402_300_800_000
const TOKEN_BYTES = 3

export type Summary = { readonly text: string; readonly by: string; readonly messages: number; readonly covers: ReadonlyMap<string, readonly [at: number, n: number]> }
/** A message with the position of its item. */
export type PlacedMessage = { readonly place: Place; readonly item: Item; readonly message: Message }
/**
 * `pending`: the positions of imported messages that are not approved; `isSummaryPending`: whether the summary covers one, or is imported
 * and not approved.
 */
export type Conversation = { readonly title: string; readonly summary: Summary | null; readonly messages: readonly PlacedMessage[]; readonly pending: ReadonlySet<Place>; readonly isSummaryPending: boolean }

/** Parse the entries of a session, in order. */
export function conversationOf(entries: readonly Placed[]): Conversation {
  let title = ''
  let summary: Summary | null = null
  let made: Place | null = null
  const messages: PlacedMessage[] = []
  for (const { place, item } of entries) {
    const mark = markIn(item)
    if (mark === null) {
      messages.push({ place, item: item as Item, message: readMessage(item as Item) })
      continue
    }
    if (typeof mark['title'] === 'string') title = mark['title'].toWellFormed()
    const found = summaryIn(mark)
    if (found !== null) [summary, made] = [found, place]
  }
  const imported = unapprovedOf(entries)
  const pending = new Set(messages.map(one => one.place).filter(place => imported.has(place)))
  const { covers } = summary ?? { covers: new Map() }
  return { title, summary, messages, pending, isSummaryPending: (made !== null && imported.has(made)) || [...pending].some(place => isCovered(covers, place)) }
}

const isCovered = (covers: Summary['covers'], [at, device, n]: Place): boolean => {
  const until = covers.get(device)
  return until !== undefined && !isAfter([at, n], until)
}

/** Tell whether an item records which messages were imported. */
export const isImportMark = (item: object): boolean => 'imported' in (markIn(item) ?? {})

/** Return the mark in an item; null for a message. */
function markIn(item: object): Item | null {
  const mark = Object.keys(item).length === 1 ? (item as Item)[MARK] : undefined
  return isObject(mark) ? mark : null
}

/** The positions of imported messages that are not approved. */
export function pendingOf(entries: readonly Placed[]): ReadonlySet<Place> {
  const found = unapprovedOf(entries)
  return new Set(entries.filter(({ place, item }) => found.has(place) && markIn(item) === null).map(one => one.place))
}

/** The same, with imported titles and summaries. A mark that was imported among the messages approves nothing. */
export function unapprovedOf(entries: readonly Placed[]): ReadonlySet<Place> {
  const marks = entries.flatMap(({ place, item }) => {
    const mark = markIn(item)
    return mark === null ? [] : [{ place, mark }]
  })
  const ranges = marks.flatMap(({ place: [, device], mark }) => {
    const [first, last] = [positionIn(mark['from']), positionIn(mark['to'])]
    return typeof mark['imported'] === 'string' && mark['device'] === device && first !== null && last !== null ? [{ device, first, last }] : []
  })
  const isImported = ([at, device, n]: Place): boolean => ranges.some(one => one.device === device && !isAfter(one.first, [at, n]) && !isAfter([at, n], one.last))
  const approved = marks.flatMap(({ place, mark: { approved: until } }) => (isObject(until) && !isImported(place) ? [until] : []))
  const isApproved = ([at, device, n]: Place): boolean =>
    approved.some(all => {
      const until = Object.hasOwn(all, device) ? positionIn(all[device]) : null
      return until !== null && !isAfter([at, n], until)
    })
  return new Set(entries.map(one => one.place).filter(place => isImported(place) && !isApproved(place)))
}

/**
 * Return the mark that approves all imported messages, and the titles and summaries imported with them: of each device up to the last of
 * these.
 */
export function approvalOf(entries: readonly Placed[]): object {
  const until: Record<string, Position> = {}
  for (const [at, device, n] of unapprovedOf(entries)) {
    const last = until[device]
    if (last === undefined || isAfter([at, n], last)) until[device] = [at, n]
  }
  return { [MARK]: { approved: until } }
}

type Position = readonly [at: number, n: number]
/** Return the time and number in a mark; null if invalid. */
const positionIn = (value: unknown): Position | null => (Array.isArray(value) && value.length === 2 && value.every(Number.isInteger) ? (value as unknown as Position) : null)
const isAfter = ([at, n]: Position, [other, m]: Position): boolean => at > other || (at === other && n > m)

/** Return the summary in a mark; null if absent or malformed: then nothing is covered. */
function summaryIn(mark: Item): Summary | null {
  const { summary: text, covers, messages, by } = mark
  if (typeof text !== 'string' || !isObject(covers)) return null
  const found = new Map<string, readonly [number, number]>()
  for (const [device, until] of Object.entries(covers)) {
    const position = positionIn(until)
    if (position === null) return null
    found.set(device, position)
  }
  return { text: text.toWellFormed(), by: typeof by === 'string' ? by.toWellFormed() : 'another program', messages: Number.isInteger(messages) ? (messages as number) : 0, covers: found }
}

/** Number of messages that the summary covers. */
export function coveredIn({ summary, messages }: Conversation): number {
  return summary === null ? 0 : messages.filter(({ place }) => isCovered(summary.covers, place)).length
}

/** The stored title, else the beginning of the first request, else `Untitled`. */
export function titleOf({ title, messages }: Conversation): string {
  if (title !== '') return title
  const first = messages.find(({ message }) => isRequest(message) && trim(message.text) !== '')
  return first === undefined ? 'Untitled' : shortened(first.message.text)
}

/** The beginning of the last message of a user or a model. */
export function previewOf({ messages }: Conversation): string {
  const last = messages.findLast(({ message }) => (message.role === 'user' || message.role === 'assistant') && trim(message.text) !== '')
  return last === undefined ? '' : shortened(last.message.text)
}

/** Return the first characters of a text in one line. */
function shortened(text: string): string {
  const letters = [...split(text).join(' ')]
  return letters.length <= PREVIEW ? letters.join('') : `${trimEnd(letters.slice(0, PREVIEW - 1).join(''))}…`
}

/** Approximate number of tokens of the messages. */
export const tokensIn = ({ messages }: Conversation): number => messages.reduce((sum, { message }) => sum + Math.ceil(byteLength(message.text) / TOKEN_BYTES), 0)

/**
 * Return all messages, each under its speaker and time; the summary comes last. Messages are quoted line by line, so no text of a message
 * is a heading of the page.
 */
export function asMarkdown(session: Conversation): string {
  const pieces = [`# ${titleOf(session)}`]
  for (const { place, message } of session.messages) {
    pieces.push(`## ${WHO[message.role] ?? 'Other'}, ${momentOf(place[0])}${message.tools.length > 0 ? ` (calls ${message.tools.join(', ')})` : ''}${session.pending.has(place) ? PENDING : ''}`)
    if (message.text !== '') pieces.push(quoted(message.text))
  }
  if (session.summary !== null) {
    const { by, messages, text } = session.summary
    pieces.push(`## Summary of ${String(messages).replace(/\B(?=(\d{3})+$)/g, ',')} ${messages === 1 ? 'message' : 'messages'}, by ${by}${session.isSummaryPending ? PENDING : ''}`, quoted(text))
  }
  return `${pieces.join('\n\n')}\n`
}

/** Date and time in UTC. A writer may date a text beyond the calendar. */
const momentOf = (at: number): string => (at < LAST ? new Date(at).toISOString().slice(0, 19).replace('T', ' ') : 'after the year 9999')

const quoted = (text: string): string => linesOf(text).map(line => trimEnd(`> ${line}`)).join('\n')
