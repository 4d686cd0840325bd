/** Messages and events of a context block: one line each with its time and speaker, in order of time, in one fence. */

import { beginning, byCodePoints, byteLength } from '../core/bytes.ts'
import { cleanText, QUOTE, tagged } from '../core/fence.ts'
import { split, trimStart, WHITE } from '../core/white.ts'
import { asksNumber, asksWhen, hasNumber, hasTime } from './marks.ts'
import { passages } from './passages.ts'
import { terms, uncased } from './terms.ts'

const TAG = 'memory-said'
/** Maximum bytes of a line, and of the two marks for a cut text. */
const MOST_BYTES = 600
const MARKS = byteLength(' …') * 2
const FENCE = byteLength(tagged(TAG, [], '')) + 1
const MOST_WHO = 80
/** Weight of a term of the answered message, relative to a term of the query: it only decides between passages that have as much of the query. */
const OF_ASKED = 0.1
const SENTENCES = new RegExp(`\\n+|(?<=[.!?])[${WHITE}]+|(?<=[。！？])`, 'u')
const BULLET = new RegExp(`^(?:[-*>#]+|\\p{Nd}+[.)])[${WHITE}]+|^\\[[^\\]]*\\] `, 'u')

/** The input of a line: time, speaker and text, and its order among equal times; `question`: the message that it answers. */
export type Spoken = { readonly at: number; readonly order: number; readonly when: string; readonly who: string; readonly text: string; readonly mark: string; readonly question: string }
/** The criteria for a passage: the weight of each term, and whether a question asks when, or how many. */
export type Sought = { readonly terms: ReadonlyMap<string, number>; readonly when: boolean; readonly number: boolean }

/** Return the criteria of a query. */
export const soughtBy = (query: string): Sought => ({ terms: new Map(terms(query).map(term => [term, 1])), when: asksWhen(query), number: asksNumber(query) })
/** One message or event as a block shows it; `mark`: its identity. */
export type SaidLine = { readonly at: number; readonly order: number; readonly who: string; readonly question: string; readonly text: string; readonly mark: string; readonly sentences: ReadonlySet<string> }

/** The lines of a block, without repeats. */
export class Talk {
  readonly #known: ReadonlySet<string>[]
  lines: readonly SaidLine[] = []

  constructor(known: string) {
    this.#known = known === '' ? [] : [sentencesOf(known)]
  }

  /**
   * Add a line and return the bytes that it takes; 0 if it does not fit or repeats a text of the block. A repeated message has its last
   * time.
   */
  add(line: SaidLine, room: number): number {
    const cost = costOf(line) + (this.lines.length > 0 ? 0 : FENCE)
    const { sentences } = line
    if (cost > room || this.#known.some(known => isWithin(sentences, known))) return 0
    // "Yes" to another question is another answer.
    const same = this.lines.find(one => one.who === line.who && isSame(one.sentences, sentences) && one.question === line.question)
    if (same === undefined) {
      this.lines = [...this.lines, line]
      return cost
    }
    if (line.at <= same.at) return 0
    this.lines = this.lines.map(one => (one === same ? line : one))
    return cost - costOf(same)
  }

  /** Remove the lines that a memory of the block contains too, and return the bytes that this frees. */
  without(text: string): number {
    const known = sentencesOf(text)
    this.#known.push(known)
    const kept = this.lines.filter(line => !isWithin(line.sentences, known))
    const gone = this.lines.filter(line => !kept.includes(line)).reduce((sum, line) => sum + costOf(line), 0)
    const freed = gone + (this.lines.length > 0 && kept.length === 0 ? FENCE : 0)
    this.lines = kept
    return freed
  }

  /** The lines in their fence, oldest first. */
  get text(): string {
    const ordered = [...this.lines].sort((a, b) => a.at - b.at || a.order - b.order)
    return tagged(TAG, [], ordered.map(line => line.text).join('\n'))
  }
}

const costOf = (line: SaidLine): number => QUOTE.length + byteLength(line.text) + 1
const isWithin = (some: ReadonlySet<string>, all: ReadonlySet<string>): boolean => [...some].every(one => all.has(one))
const isSame = (one: ReadonlySet<string>, other: ReadonlySet<string>): boolean => one.size === other.size && isWithin(one, other)

/** The line of a message or event; of a long text the passage that matches the criteria and the answered message best. */
export function saidLine({ at, order, when, who, text, mark, question }: Spoken, sought: Sought): SaidLine {
  const called = [...split(cleanText(who)).join(' ')].slice(0, MOST_WHO).join('')
  const head = trimStart(`${when.slice(0, 16).replace('T', ' ')} ${called}: `)
  return { at, order, who: called, question, text: head + shortened(text, sought, MOST_BYTES - byteLength(head), question), mark, sentences: sentencesOf(text) }
}

/** Return a text on one line of at most so many bytes. */
function shortened(text: string, sought: Sought, most: number, question: string): string {
  const line = split(text).join(' ')
  if (byteLength(line) <= most) return line
  const parts = passages(text)
  // The question before may use other words for the answer.
  const wanted = new Map([...terms(question).map((term): [string, number] => [term, OF_ASKED]), ...sought.terms])
  const having = parts.map(part => new Set(terms(part).filter(term => wanted.has(term))))
  const worth = (term: string): number => (wanted.get(term) as number) * Math.log(1 + parts.length / having.filter(one => one.has(term)).length)
  const bonus = (part: string): number => Number(sought.when && hasTime(part)) + Number(sought.number && hasNumber(part))
  const worths = having.map((one, at) => [...one].sort(byCodePoints).reduce((sum, term) => sum + worth(term), 0) + bonus(parts[at] as string))
  const best = worths.indexOf(Math.max(...worths))
  const whole = split(parts[best] as string).join(' ')
  const rest = byteLength(whole) > most - MARKS ? around(whole, wanted, most - MARKS) : whole
  const shown = beginning(rest, most - MARKS)
  return `${best > 0 || rest !== whole ? '… ' : ''}${shown}${best + 1 < parts.length || shown !== rest ? ' …' : ''}`
}

/** Of a passage without a sentence end, return the part of so many bytes with most of the wanted terms. */
function around(line: string, wanted: ReadonlyMap<string, number>, most: number): string {
  const words = line.split(' ')
  const hits = words.map(word => new Set(terms(word).filter(term => wanted.has(term))).size)
  let [start, size, there, best, from] = [0, 0, 0, 0, 0]
  for (const [end, word] of words.entries()) {
    size += byteLength(word) + 1
    there += hits[end] as number
    while (size > most && start < end) {
      size -= byteLength(words[start] as string) + 1
      there -= hits[start] as number
      start++
    }
    if (there > best) [best, from] = [there, start]
  }
  return words.slice(from).join(' ')
}

/** The sentences and lines of a text, without case and list marks. */
function sentencesOf(text: string): ReadonlySet<string> {
  const found = cleanText(text).split(SENTENCES).map(one => uncased(split(one).join(' ').replace(BULLET, '')).replace(/[.!]+$/, ''))
  return new Set(found.filter(Boolean))
}
