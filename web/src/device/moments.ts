/**
 * Entries of recall other than memories: events of the timeline, grouped by day, and messages, grouped by session. The neighbours of an
 * entry add to its meaning. Own ones are texts of this person; imported events are history, and imported messages are pending until
 * approved. Loaded with a vault, apart from what a page needs first.
 */

import { blake2b } from '@noble/hashes/blake2.js'
import { byCodePoints, type Bytes, canonical, hex, isObject, utf8 } from '../core/bytes.ts'
import { cleanText } from '../core/fence.ts'
import { readName } from '../core/state.ts'
import { instant, isUse, lineOf, splitOwnId, timelineOf, type TimelineEvent, unionOfScopes } from '../core/timeline.ts'
import { fetcherOf } from '../core/views.ts'
import { trimStart, WHITE } from '../core/white.ts'
import { LAST, pendingOf, conversationOf as messagesIn } from '../life/conversation.ts'
import type { Document } from '../recall/ranking.ts'
import type { Moment } from '../results.ts'
import { localDay } from './days.ts'
import { Sessions } from './sessions.ts'
import type { Shown } from './shown.ts'

/** Characters of an event or a message that are searched. */
const LONGEST = 20_000
/** A numeric time from here on is in milliseconds, below in seconds. And the end of the calendar. */
const MILLISECONDS = 100_000_000_000
const YEAR_9999 = 253_370_764_800_000
/** Fields with the time of a message. */
const TIMES = ['ts', 'timestamp', 'created_at']
/** A speaker's name before a message: one or two words. */
const NAME = "[\\p{L}\\p{Nl}\\p{No}][\\p{L}\\p{N}_.'-]{0,40}"
const SPEAKS = new RegExp(`^(${NAME}(?: ${NAME})?): +(?=[^${WHITE}])`, 'u')

/** A moment and its searched form. */
export type IndexedMoment = { readonly moment: Moment; readonly document: Document }
export type Moments = { readonly indexed: readonly IndexedMoment[]; readonly missing: number }

/** Return the events and messages of some scopes, each day and each session in order, and the number of parts whose text is not here. */
export function momentsOf(shown: Shown, scopes: readonly string[], which: ReadonlySet<Moment['kind']>): Moments {
  const live = scopes.filter(scope => !shown.isForgotten(scope))
  const found = [...(which.has('event') ? [daysOf(shown, live)] : []), ...(which.has('message') ? [...live].sort(byCodePoints).map(scope => sessionsOf(shown, scope)) : [])]
  return { indexed: found.flatMap(one => one.indexed), missing: found.reduce((sum, one) => sum + one.missing, 0) }
}

/** Tell whether these scopes may have an event or a message. */
export function mayHaveMoments(shown: Shown, scopes: readonly string[]): boolean {
  const live = scopes.filter(scope => !shown.isForgotten(scope))
  for (const name of shown.replica.entries.keys()) {
    const said = name.startsWith('t/') || name.includes('session-') ? readName(name) : null
    if ((said?.kind === 't' || (said?.kind === 'm' && said.key.startsWith('session-'))) && live.includes(said.scope)) return true
  }
  return false
}

function daysOf(shown: Shown, live: readonly string[]): Moments {
  const days = new Map<string, Map<string, { dev: string; data: Bytes }[]>>()
  let missing = 0
  for (const [name, entry] of shown.replica.entries) {
    const said = name.startsWith('t/') ? readName(name) : null
    if (said?.kind !== 't' || !live.includes(said.scope)) continue
    const fetch = fetcherOf(name, entry, shown.replica.opened)
    const there = days.get(said.day) ?? new Map<string, { dev: string; data: Bytes }[]>()
    days.set(said.day, there)
    for (const value of Object.values(entry)) {
      const data = fetch(value.body ?? '')
      if (data === null) missing++
      else there.set(said.scope, [...(there.get(said.scope) ?? []), { dev: said.dev, data }])
    }
  }
  const indexed = [...days].sort(([a], [b]) => byCodePoints(a, b)).flatMap(([day, segments]) => {
    const sources = live.map(scope => ({ scope, events: timelineOf(segments.get(scope) ?? []) }))
    const scopeOf = new Map([...sources].reverse().flatMap(({ scope, events }) => events.map((event): [string, string] => [lineOf(event), scope])))
    const events = unionOfScopes(sources.map(one => one.events)).filter(event => !isUse(event))
    return events.map(event => indexedEvent(shown, day, scopeOf.get(lineOf(event)) as string, event))
  })
  // Days stay in order, and so do equal times on two of them.
  const id = ({ moment: { event } }: IndexedMoment): string => (event as TimelineEvent).id
  return { indexed: indexed.sort((a, b) => a.moment.at - b.moment.at || byCodePoints(id(a), id(b))), missing }
}

function indexedEvent(shown: Shown, day: string, scope: string, event: TimelineEvent): IndexedMoment {
  const { ts, type, id, ...rest } = event
  const device = splitOwnId(id)?.device ?? ''
  const at = instant(ts) ?? instant(day) ?? 0
  const said = typeof rest['text'] === 'string' ? rest['text'] : ''
  const { text: _, ...others } = rest
  const words = cut([type, ...textsIn(said === '' ? rest : others)].join(' '))
  const moment: Moment = { kind: 'event', scope, own: device !== '' && shown.replica.isMine(device), device, at, type, session: '', text: said === '' ? words : said, event }
  return { moment, document: documentOf(`event ${day} ${at < 0 ? `-${String(-at).padStart(14, '0')}` : String(at).padStart(15, '0')} ${scope} ${hashOf(event)}`, `event  ${day}`, at, said === '' ? '' : words, said === '' ? words : cut(said)) }
}

/** Of events that match equally well, the first by this comes first, as in Python. */
const hashOf = (event: TimelineEvent): string => hex(blake2b(utf8(lineOf(event)), { dkLen: 8 }))

/** Return the texts in a JSON value, in order. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) return value.flatMap(textsIn)
  return isObject(value) ? Object.keys(value).sort().flatMap(name => textsIn(value[name])) : []
}

function sessionsOf(shown: Shown, scope: string): Moments {
  const { sessions, missing } = new Sessions(shown, scope).all()
  const indexed = sessions.flatMap(({ token, session, entries }) => {
    const pending = pendingOf(entries)
    return messagesIn(entries).messages.flatMap(({ place, item, message: { role, text: words, speaker } }): IndexedMoment[] => {
      if (words === '' || role === 'system') return []
      // A named speaker comes before the text.
      const text = speaker === '' || words.startsWith(`${speaker}:`) ? words : `${speaker}: ${words}`
      const [added, device, n] = place
      const at = TIMES.map(name => ownTime(item[name])).find(time => time !== 0) ?? added
      const moment: Moment = { kind: 'message', scope, own: !pending.has(place), device, at, type: role, session, text, event: null }
      return [{ moment, document: documentOf(`message ${scope} ${token} ${added} ${device} ${n}`, `message ${scope} ${token}`, at, SPEAKS.test(text) ? '' : speaker, cut(text)) }]
    })
  })
  return { indexed, missing }
}

/** Return the stated time of a message; 0 if absent or unreadable. */
function ownTime(value: unknown): number {
  if (typeof value === 'string') return instant(value) ?? 0
  if (typeof value !== 'number' || value <= 0 || value >= YEAR_9999) return 0
  return Math.floor(value >= MILLISECONDS ? value : value * 1000)
}

function documentOf(id: string, group: string, at: number, header: string, text: string): Document {
  const speaks = SPEAKS.exec(text)
  const [who, said] = speaks === null ? [header, text] : [trimStart(`${header} ${speaks[1]}`), text.slice(speaks[0].length)]
  return { id, text: said, header: who, group, at: at < LAST ? localDay(at) : null, salience: null }
}

const cut = (text: string): string => (text.length <= LONGEST ? text : [...text].slice(0, LONGEST).join(''))

/** Return the text of a message; of an event its text, and its other fields, as Python writes JSON. */
export function saidBy({ event, text }: Moment): string {
  if (event === null) return cleanText(text)
  const { ts, type, id, ...rest } = event
  const { text: said = '', ...others } = rest
  const isSaid = typeof said === 'string' && said !== ''
  const spoken = isSaid ? others : rest
  return cleanText([isSaid ? said : '', Object.keys(spoken).length > 0 ? spaced(spoken) : ''].filter(Boolean).join(' '))
}

function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`
  if (isObject(value)) return `{${Object.keys(value).sort().map(name => `${JSON.stringify(name)}: ${spaced(value[name])}`).join(', ')}}`
  if (typeof value === 'number' && value !== 0 && Math.abs(value) < 1e-4) return value.toExponential().replace(/e-(\d)$/, 'e-0$1')
  return canonical(value)
}

/** Return the UTC time to the second; empty outside the calendar. */
export const whenOf = ({ at }: Moment): string => (at < LAST ? `${new Date(at).toISOString().slice(0, 19)}Z` : '')
