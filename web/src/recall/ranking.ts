/**
 * Memory files and messages ranked for a question, by words: the recipe of every other face, for entries each of which stands alone.
 *
 * A score is the sum of its parts. Meaning counts where a model is named, which this client has none of.
 */

import { byCodePoints } from '../core/bytes.ts'
import { daysNamed } from './dates.ts'
import { passages } from './passages.ts'
import { likened, spelled } from './spelling.ts'
import { terms } from './terms.ts'

const MOST_TERMS = 64
const HALF_LIFE_DAYS = 7
/** Letters of an ending that a stem has lost, and the least of a stem that a longer word is looked for by. */
const LONGEST_ENDING = 3
const LEAST_STEM = 4
/** Each part and what it counts, of an entry that has no others beside it. */
const WEIGHTS = { words: 7.5, cover: 3, day: 2, file: 2.5, header: 2, salience: 0.5, recency: 0.5 } as const
type Part = keyof typeof WEIGHTS
const DECAY_RATES: Readonly<Record<string, number>> = { never: 0, '30d': 1 / 30, '90d': 1 / 90 }
/** The same for a confidence without a `decay`: it halves in 70 days. */
const FADING = 0.01
const BONUS: Readonly<Record<string, number>> = { feedback: 0.3, user: 0.2, project: 0.1 }

export type Document = {
  readonly id: string
  readonly text: string
  /** Key, name, description, tags and category. */
  readonly header: string
  /** When it was last changed, in days since 1970; null where nothing says it. */
  readonly at: number | null
  /** What it is worth beside any question, 0 to 1; null for what is no memory file. */
  readonly salience: number | null
}

export type Ranked = { readonly id: string; readonly score: number; readonly parts: Readonly<Partial<Record<Part, number>>> }

export type Worth = {
  readonly type: string
  readonly tags: number
  readonly important: boolean
  readonly confidence: number | null
  readonly decay: string
  readonly idleDays: number
  /** How often this device used it: that keeps it up. */
  readonly uses: number
  readonly expired: boolean
}

/** What a memory file is worth, 0 to 1: by its type and tags, times its confidence, faded by its decay. */
export function worthOf({ type, tags, important, confidence, decay, idleDays, uses, expired }: Worth): number {
  if (expired) return 0
  const base = important ? 1 : Math.min(1, 0.5 + (BONUS[type] ?? 0) + Math.min(0.05 * tags, 0.2))
  const rate = important ? 0 : (DECAY_RATES[decay] ?? (confidence === null ? 0 : FADING))
  const held = confidence ?? 1
  const left = idleDays > 1 ? held * Math.exp(-rate * idleDays) : held
  return base * Math.min(1, left * (1 + Math.log2(Math.max(1, uses))))
}

/** 1 for what was changed or used now, a half after seven days; what lies ahead is now. */
export const recency = (days: number): number => 0.5 ** (Math.max(0, days) / HALF_LIFE_DAYS)

/** The terms of a text or a passage: how often it has each, and how many these are. */
type Passage = { readonly counts: ReadonlyMap<string, number>; readonly size: number }

/** What was counted of a document. */
export type Counted = Passage & {
  readonly header: ReadonlySet<string>
  /** Its passages, each with the header; itself where it is one. */
  readonly passages: readonly Passage[]
}

function counted(one: Document): Counted {
  const whole = countedIn(`${one.header}\n${one.text}`)
  const found = passages(one.text)
  const each = found.length === 1 ? [whole] : found.map(text => countedIn(`${one.header}\n${text}`))
  return { ...whole, header: new Set(terms(one.header)), passages: each }
}

function countedIn(text: string): Passage {
  const all = terms(text)
  const counts = new Map<string, number>()
  for (const term of all) counts.set(term, (counts.get(term) ?? 0) + 1)
  return { counts, size: all.length }
}

/** How many of these have each term, and how many terms one has on average. */
function statistics(all: readonly Passage[]): { having: Map<string, number>; average: number } {
  const having = new Map<string, number>()
  for (const { counts } of all) for (const term of counts.keys()) having.set(term, (having.get(term) ?? 0) + 1)
  return { having, average: all.reduce((sum, one) => sum + one.size, 0) / (all.length || 1) }
}

/** BM25 of some texts, and what each term is worth among all of these. */
function bm25(wanted: readonly string[], many: number, having: ReadonlyMap<string, number>, average: number) {
  const worths = wanted.map(term => {
    const times = having.get(term) ?? 0
    return Math.max(1e-6, Math.log((many - times + 0.5) / (times + 0.5)))
  })
  const score = ({ counts, size }: Passage): number =>
    wanted.reduce((sum, term, i) => {
      const times = counts.get(term) ?? 0
      return times === 0 ? sum : sum + ((worths[i] as number) * times * 2.2) / (times + 1.2 * (0.25 + (0.75 * size) / average))
    }, 0)
  return { worths, score }
}

/** Documents that can be asked more than once. */
export class Ranking {
  readonly #documents: readonly Document[]
  readonly #counted: readonly Counted[]
  #known: { whole: ReturnType<typeof statistics>; passages: readonly Passage[]; of: ReturnType<typeof statistics> } | null = null

  /** `known`: what was counted before of documents that stayed the same; it is kept up to date. */
  constructor(documents: readonly Document[], known = new WeakMap<Document, Counted>()) {
    this.#documents = documents
    this.#counted = documents.map(one => {
      const held = known.get(one) ?? counted(one)
      known.set(one, held)
      return held
    })
  }

  get size(): number {
    return this.#documents.length
  }

  /** How many documents have each term. */
  get having(): ReadonlyMap<string, number> {
    return this.#statistics().whole.having
  }

  #statistics() {
    if (this.#known === null) {
      const [whole, passages] = [statistics(this.#counted), this.#counted.flatMap(one => one.passages)]
      this.#known = { whole, passages, of: passages.length === this.#counted.length ? whole : statistics(passages) }
    }
    return this.#known
  }

  /** The terms that begin with one of these, or that are what one of these begins with but for an ending that a stem has lost; of a single letter all pairs. */
  beginningWith(beginnings: readonly string[]): string[] {
    const { having } = this
    let found = [...having.keys()].filter(term => beginnings.some(one => term.startsWith(one) || ([...one].length === 1 && term.endsWith(one))))
    if (found.length === 0) {
      const shorter = beginnings.flatMap(word => Array.from({ length: LONGEST_ENDING }, (_, cut) => [...word].slice(0, -1 - cut)))
      found = [...new Set(shorter.filter(letters => letters.length >= LEAST_STEM).map(letters => letters.join('')))].filter(term => having.has(term))
    }
    return found.sort(byCodePoints)
  }

  /** All that anything speaks for, the best first. `instead`: terms in the place of the question's; `only`: which may be hits. */
  rank(question: string, today: number, instead: readonly string[] | null = null, only: ((id: string) => boolean) | null = null): Ranked[] {
    const { having } = this
    const isIn = this.#documents.map(one => only === null || only(one.id))
    const times = (term: string): number => (only === null || !having.has(term) ? (having.get(term) ?? 0) : this.#counted.filter(({ counts }, n) => isIn[n] && counts.has(term)).length)
    const sought = instead ?? likened(spelled([...new Set(terms(question))], times), times, having.keys())
    const wanted = [...new Set(sought)].slice(0, MOST_TERMS)
    const { whole, passages, of } = this.#statistics()
    const { worths, score: scoreOf } = bm25(wanted, this.#documents.length, having, whole.average)
    const ofPassage = bm25(wanted, passages.length, of.having, of.average).score
    const total = worths.reduce((sum, one) => sum + one, 0)
    const share = (has: (term: string) => boolean): number =>
      total === 0 ? 0 : wanted.reduce((sum, term, i) => sum + (has(term) ? (worths[i] as number) : 0), 0) / total
    const raw = this.#counted.map(scoreOf)
    const most = raw.reduce((a, b, n) => (isIn[n] ? Math.max(a, b) : a), 0)
    const best = of === whole ? raw : this.#counted.map(one => Math.max(...one.passages.map(ofPassage)))
    const mostOfPassages = best.reduce((a, b, n) => (isIn[n] && raw[n] !== 0 ? Math.max(a, b) : a), 0)
    const shareOf = (score: number, most: number): number => (most === 0 ? 0 : Math.min(1, score / most))
    const named = daysNamed(question, today)
    const hits: Ranked[] = []
    for (const [n, one] of this.#documents.entries()) {
      const isDated = one.at !== null && named.some(days => days(one.at as number))
      if (!isIn[n] || (raw[n] === 0 && !isDated)) continue
      const words = (shareOf(raw[n] as number, most) + shareOf(best[n] as number, mostOfPassages)) / 2
      const { counts, header } = this.#counted[n] as Counted
      const values: Record<Part, number> = {
        words,
        cover: share(term => counts.has(term)),
        day: isDated ? 1 : 0,
        file: one.salience === null ? 0 : 1,
        header: share(term => header.has(term)),
        salience: one.salience ?? 0,
        recency: one.salience === null || one.at === null ? 0 : recency(today - one.at)
      }
      const parts: Partial<Record<Part, number>> = {}
      let score = 0
      for (const part of Object.keys(WEIGHTS) as Part[]) {
        const counts = Math.round(WEIGHTS[part] * values[part] * 1e10) / 1e10 // as in Python
        if (counts === 0) continue
        parts[part] = counts
        score += counts
      }
      hits.push({ id: one.id, score, parts })
    }
    return hits.sort((a, b) => b.score - a.score || byCodePoints(a.id, b.id))
  }
}
