/**
 * The context for a model at the start of a session or before a prompt: the index of the own memories, and with a query the matching texts,
 * fenced and within a limit. Byte for byte the block of every other interface.
 *
 * It contains only own texts. A token is estimated as three bytes of UTF-8 unless the caller counts.
 */

import { beginning, byteLength, byCodePoints } from '../core/bytes.ts'
import { fenceMemory, NOTICE, QUOTE, type Quoted, tagged, unquote } from '../core/fence.ts'
import { MOST_INDEX_BYTES, MOST_INDEX_LINES, SECTIONS } from '../core/index.ts'
import { MemoryError } from '../device/errors.ts'
import type { SaidLine, Talk } from './talk.ts'

/**
 * `index`: the index, with a query after the matches. `full`: with the last events too. `ranked`: only the matches. `turn`: only the best
 * few.
 */
export type Layout = 'index' | 'ranked' | 'full' | 'turn'
const LAYOUTS: readonly string[] = ['index', 'ranked', 'full', 'turn']

export type BlockHow = {
  /** 200 to 200,000; default 2,000 plus the size of the facts, 500 for the layout `turn`. */
  readonly maxTokens?: number
  readonly layout?: Layout
  /** Returns the number of tokens of a text, if three bytes per token are not exact enough. */
  readonly count?: (text: string) => number
  /** The current session, whose messages the model has already. */
  readonly running?: string
}

/** A matching memory with its location, `key` or `scope/key`. */
export type Memory = { readonly place: string; readonly quoted: Quoted }
/** A memory, or a message or event. */
export type Match = Memory | SaidLine
export type IndexLine = { readonly scope: string; readonly key: string; readonly section: string; readonly line: string }
/** A valid fact, `- [category] text`; `worth` and `writtenAt`, its clock, decide which ones stay if not all fit. */
export type FactLine = { readonly scope: string; readonly line: string; readonly isRestriction: boolean; readonly worth: number; readonly writtenAt: string }
export type Found = {
  readonly facts: readonly FactLine[]
  /** Best first. */
  readonly matches: readonly Match[]
  /** By priority, then last written first. */
  readonly index: readonly IndexLine[]
  /** Oldest first. */
  readonly events: readonly string[]
  readonly scopes: readonly string[]
  /** Makes the lines of messages and events for a block that already contains a text; null if there are none. */
  readonly talk: ((known: string) => Talk) | null
}

/** The block and its content. Empty text: there is no context. */
export type Block = {
  readonly text: string
  readonly tokens: number
  /** Locations of the memories that are in it with their texts, and of matches that did not fit. */
  readonly shown: readonly string[]
  readonly skipped: readonly string[]
  /** Number of memories in the index and of facts in it, and of both that did not fit. */
  readonly listed: number
  readonly leftOut: number
  readonly events: number
  /** Number of matching messages and events in it. */
  readonly said: number
}

const TOKEN_BYTES = 3
const LEAST_TOKENS = 200
const MOST_TOKENS = 200_000
/** Maximum matches examined, and for the layout `turn`; maximum bytes of one; a text that would be cut below a minimum is not shown. */
const HITS = 20
const TURN_HITS = 3
/**
 * Maximum matching messages and events, and for the layout `turn`; number of the best that precede the memories, in a quarter of the space.
 */
const SAID = 60
const TURN_SAID = 5
const FIRST_SAID = 3
/** Hits examined for messages and events in the layout `turn`. */
const TURN_LOOKED = 40
const LONGEST = 6000
const SHORTEST = 1200
/** Factor by which the bytes of a block may grow for a counter that finds few tokens in them. */
const WIDEST = 8
const EVENT_BYTES = 600
/** Number of memories that do not fit after which no shorter one is searched, and bytes of the shortest line. */
const MOST_PASSED = 200
const LEAST_LINE = 16
/** Tokens that facts may add without a limit by the caller; bytes that they leave for the rest, at most a quarter of a block. */
const FACTS_TOKENS = 8000
const BESIDE_FACTS = 1500
/** Maximum keys named of the matches that did not fit. */
const NAMED = 10

export const usualTokens = (layout: Layout): number => (layout === 'turn' ? 500 : 2000)
export const MATCHES_OF = (layout: Layout): number => (layout === 'turn' ? TURN_HITS : HITS)

export const SAID_OF = (layout: Layout): number => (layout === 'turn' ? TURN_SAID : SAID)
export const LOOKED_OF = (layout: Layout): number => (layout === 'turn' ? TURN_LOOKED : HITS + SAID)

const part = (room: number, of: number, parts: number): number => Math.floor((room * of) / parts)
const grouped = (number: number): string => String(number).replace(/\B(?=(\d{3})+$)/g, ',')
const tokensOf = (text: string): number => Math.ceil(byteLength(text) / TOKEN_BYTES)

/** Make the block; at most `maxTokens`, by `count` if given. */
export function contextBlock(found: Found, { layout = 'index', maxTokens: most, count }: BlockHow = {}): Block {
  const maxTokens = most ?? usualTokens(layout) + Math.min(FACTS_TOKENS, Math.ceil(bytesOf(factTexts(found.facts, found.scopes)) / TOKEN_BYTES))
  if (!LAYOUTS.includes(layout)) throw new MemoryError('usage', `unknown layout ${layout}`, `It is one of ${LAYOUTS.join(', ')}.`)
  if (!Number.isInteger(maxTokens) || maxTokens < LEAST_TOKENS || maxTokens > MOST_TOKENS) {
    throw new MemoryError('usage', `maxTokens is ${LEAST_TOKENS} to ${grouped(MOST_TOKENS)}, not ${maxTokens}`)
  }
  const tokens = (text: string): number => (text === '' ? 0 : counted(text, count))
  let room = maxTokens * TOKEN_BYTES
  let block = blockIn(found, room, layout)
  let size = tokens(block.text)
  // Another counter finds fewer or more tokens in the same bytes: the limit is raised once, and lowered until the block fits.
  if (count !== undefined && size > 0 && size < maxTokens) {
    room = Math.min(part(room, maxTokens, size), room * WIDEST)
    block = blockIn(found, room, layout)
    size = tokens(block.text)
  }
  while (size > maxTokens) {
    room = Math.min(part(room, 9, 10), part(room, maxTokens, size))
    block = blockIn(found, room, layout)
    size = tokens(block.text)
  }
  return { ...block, tokens: size }
}

function counted(text: string, count: ((text: string) => number) | undefined): number {
  if (count === undefined) return tokensOf(text)
  const said: unknown = count(text)
  if (typeof said !== 'number' || !Number.isFinite(said) || said < 0) {
    throw new MemoryError('usage', `the token counter returned ${String(said).slice(0, 60)} for a text`, 'It is given a text and returns how many tokens it has: a number that is 0 or more.')
  }
  return Math.ceil(said)
}

/** Make the block in at most so many bytes. */
function blockIn({ facts, matches, index, events, scopes, talk: begin }: Found, most: number, layout: Layout): Omit<Block, 'tokens'> {
  let room = most - byteLength(NOTICE) - 2
  const texts: string[] = []
  const shown: string[] = []
  const skipped: string[] = []
  const known = factsIn(facts, scopes, room - Math.min(BESIDE_FACTS, part(room, 1, 4)))
  if (known.text !== '') {
    texts.push(known.text)
    room -= byteLength(known.text) + 1
  }
  const talk = begin?.(unquote(known.text)) ?? null
  if (matches.length > 0) {
    const spare = byteLength(noRoom([], HITS, 0)) + 1
    const onlyMatches = layout === 'turn' || layout === 'ranked'
    let share = (onlyMatches ? room : part(room, 3, 4)) - spare
    const first = new Set<Match>()
    let ahead = part(share, 1, 4)
    for (const line of layout === 'turn' ? [] : matches.filter(isLine).slice(0, FIRST_SAID)) {
      const cost = (talk as Talk).add(line, ahead)
      if (cost > 0) first.add(line)
      ;[ahead, share, room] = [ahead - cost, share - cost, room - cost]
    }
    for (const match of matches) {
      if (isLine(match)) {
        const cost = first.has(match) ? 0 : (talk as Talk).add(match, share)
        ;[share, room] = [share - cost, room - cost]
        continue
      }
      const fenced = fencedIn(match.quoted, share)
      if (fenced === null) {
        skipped.push(match.place)
        continue
      }
      const freed = (talk?.without(unquote(fenced)) ?? 0) - byteLength(fenced) - 1
      ;[share, room] = [share + freed, room + freed]
      texts.push(fenced)
      shown.push(match.place)
    }
    if (talk !== null && talk.lines.length > 0) texts.push(talk.text)
    if (skipped.length > 0 && room >= spare) {
      const said = noRoom(skipped, skipped.length, onlyMatches ? room : part(room, 1, 4))
      texts.push(said)
      room -= byteLength(said) + 1
    }
  }
  let [listed, leftOut, noted] = [0, 0, 0]
  if (layout === 'index' || layout === 'full') {
    const made = indexIn(index, scopes, layout === 'index' ? room : part(room, 3, 4))
    ;({ listed, leftOut } = made)
    if (made.text !== '') {
      texts.push(made.text)
      room -= byteLength(made.text) + 1
    }
  }
  if (layout === 'full') {
    const there = new Set(talk?.lines.map(line => line.mark))
    const lines = eventsIn(events.filter(event => !there.has(event)), room)
    if (lines.length > 0) texts.push(tagged('memory-timeline', [], lines.join('\n')))
    noted = lines.length
  }
  const text = texts.length > 0 ? `${NOTICE}\n\n${texts.join('\n')}` : ''
  return { text, shown, skipped, listed: listed + known.shown, leftOut: leftOut + known.leftOut, events: noted, said: talk?.lines.length ?? 0 }
}

const isLine = (match: Match): match is SaidLine => 'sentences' in match

const bytesOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + byteLength(text) + 1, 0)

/** The facts of each scope in their fence, restrictions first, then in the order of their lines. */
function factTexts(facts: readonly FactLine[], scopes: readonly string[]): string[] {
  return scopes.flatMap(scope => {
    const lines = facts.filter(one => one.scope === scope).sort((a, b) => Number(b.isRestriction) - Number(a.isRestriction) || byCodePoints(a.line, b.line))
    return lines.length === 0 ? [] : [tagged('memory-facts', [['scope', scope]], lines.map(one => one.line).join(''))]
  })
}

const factsLeftOut = (number: number): string => `(${grouped(number)} ${number === 1 ? 'more fact' : 'more facts'} had no room here: look for them by their words.)\n`

/** Return as many whole facts as fit into `most` bytes: restrictions first, then by priority, then newest first. */
function factsIn(facts: readonly FactLine[], scopes: readonly string[], most: number): { text: string; shown: number; leftOut: number } {
  const all = factTexts(facts, scopes)
  if (bytesOf(all) <= most) return { text: all.join('\n'), shown: facts.length, leftOut: 0 }
  let room = most - byteLength(factsLeftOut(facts.length)) - 1
  const order = [...facts].sort((a, b) => Number(b.isRestriction) - Number(a.isRestriction) || b.worth - a.worth || byCodePoints(b.writtenAt, a.writtenAt))
  const chosen: FactLine[] = []
  const opened = new Set<string>()
  for (const one of order) {
    const cost = byteLength(QUOTE + one.line) + (opened.has(one.scope) ? 0 : byteLength(tagged('memory-facts', [['scope', one.scope]], '')) + 1)
    if (cost > room) continue
    room -= cost
    opened.add(one.scope)
    chosen.push(one)
  }
  const leftOut = facts.length - chosen.length
  const texts = [...factTexts(chosen, scopes), ...(room >= 0 ? [factsLeftOut(leftOut)] : [])]
  return { text: texts.join('\n'), shown: chosen.length, leftOut }
}

/** The note on matches that did not fit, with as many names as fit. */
function noRoom(places: readonly string[], number: number, room: number): string {
  const said = `(${grouped(number)} ${number === 1 ? 'more match' : 'more matches'} had no room here`
  let [named, times] = ['', 0]
  for (const place of places.slice(0, NAMED)) {
    const longer = named === '' ? `: ${place}` : `${named}, ${place}`
    if (byteLength(`${said}${longer} and others.)\n`) + 1 > room) break
    named = longer
    times++
  }
  return `${said}${named}${times > 0 && times < number ? ' and others' : ''}.)\n`
}

const leftOutText = (number: number): string => `(${grouped(number)} ${number === 1 ? 'more memory' : 'more memories'} not listed here: look for them by their words.)\n`

/** One match in its fence; a long text is cut with a note. Null if it does not fit. */
function fencedIn(quoted: Quoted, room: number): string | null {
  let { body } = quoted
  const size = byteLength(body)
  const most = Math.min(LONGEST, room)
  if (size > most) {
    if (most < SHORTEST) return null
    body = `${beginning(body, most - 600)}\n(cut here: ${grouped(size)} bytes in all)`
  }
  const fenced = fenceMemory({ ...quoted, body })
  return byteLength(fenced) + 1 <= room ? fenced : null
}

/** The index in at most `most` bytes, 200 lines and 25 KB. */
function indexIn(all: readonly IndexLine[], scopes: readonly string[], most: number): { text: string; listed: number; leftOut: number } {
  let room = Math.min(most, MOST_INDEX_BYTES) - byteLength(leftOutText(10 ** 9))
  let rows = MOST_INDEX_LINES
  let passed = 0
  const chosen = new Map<string, IndexLine[]>()
  let listed = 0
  for (const one of all) {
    const there = chosen.get(one.scope)
    let cost = byteLength(QUOTE + one.line)
    let added = 1
    if (there === undefined) {
      added += 2
      cost += byteLength(tagged('memory-index', [['scope', one.scope]], '')) + 1
    }
    if (there === undefined || there.every(other => other.section !== one.section)) {
      added++
      cost += `${QUOTE}## ${one.section}\n`.length
    }
    if (cost > room || added >= rows) {
      // Try the next lines, up to a limit, after one that does not fit.
      passed++
      if (passed >= MOST_PASSED || room < LEAST_LINE || rows < 2) break
      continue
    }
    room -= cost
    rows -= added
    listed++
    chosen.set(one.scope, [...(there ?? []), one])
  }
  const place = (section: string): number => SECTIONS.findIndex(([, title]) => title === section)
  const blocks: string[] = []
  for (const scope of scopes) {
    const lines = [...(chosen.get(scope) ?? [])].sort((a, b) => place(a.section) - place(b.section) || byCodePoints(a.key, b.key))
    const text = lines.map((one, at) => (one.section === lines[at - 1]?.section ? one.line : `## ${one.section}\n${one.line}`)).join('')
    if (text !== '') blocks.push(tagged('memory-index', [['scope', scope]], text))
  }
  const left = all.length - listed
  if (left > 0 && room >= 0) blocks.push(leftOutText(left))
  return { text: blocks.join('\n'), listed, leftOut: left }
}

/** The lines of the last events that fit, oldest first. */
function eventsIn(events: readonly string[], most: number): string[] {
  let room = most - byteLength(tagged('memory-timeline', [], 'x'))
  const lines: string[] = []
  for (const event of [...events].reverse()) {
    const line = byteLength(event) > EVENT_BYTES ? `${beginning(event, EVENT_BYTES)} (cut here)` : event
    const cost = byteLength(QUOTE + line) + 1
    if (cost > room) continue
    room -= cost
    lines.unshift(line)
  }
  return lines
}
