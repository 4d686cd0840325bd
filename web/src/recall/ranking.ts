/**
 * Rank memory files, messages and events for a question, by words, as in every other interface. A message of a session or an event of a day
 * is ranked with its neighbours, a memory file alone.
 *
 * A score is the sum of its parts. An embedding model would add one; this client has none.
 */

import { byCodePoints } from '../core/bytes.ts'
import { daysNamed, dayWords, isAmong } from './dates.ts'
import { asksNumber, asksWhen, hasNumber, hasTime, isQuestion } from './marks.ts'
import { long, passages } from './passages.ts'
import { likened, spelled } from './spelling.ts'
import { terms } from './terms.ts'

const MOST_TERMS = 64
const HALF_LIFE_DAYS = 7
/** Maximum letters of an ending removed by a stem, and minimum letters of a stem by which a longer word is found. */
const LONGEST_ENDING = 3
const LEAST_STEM = 4
/** Parts and weights, for an entry without a group, and for one of a session or a day, in the order of addition. */
const ALONE = { words: 7.5, cover: 3, day: 2, file: 2.5, header: 2, salience: 0.5, recency: 0.5 } as const
const GROUPED = { words: 3.5, cover: 3, date: 1, beside: 1.5, answer: 1, best: 2.25, group: 0.5, by: 1, when: 1, number: 1, question: -0.5, long: -2 } as const
type Part = keyof typeof ALONE | keyof typeof GROUPED
/** Above `all` entries, only the `best` by words are scored, with their neighbours, and all of `groups` groups. */
const LIMITS = { all: 5000, best: 1000, groups: 40 }
export type Limits = Readonly<typeof LIMITS>
/** The unit of a score's part, as parts of 1. */
const DIGITS = 1e10
/** More than the rounding error of adding the same numbers in another order. */
const ROUNDING = 1e-9
/**
 * Characters up to which an entry is not penalised for length, and below which a passage is so short that the one beyond it is considered
 * too.
 */
const USUAL = 400
const SHORT = 300
const DECAY_RATES: Readonly<Record<string, number>> = { never: 0, '30d': 1 / 30, '90d': 1 / 90 }
/** The decay for a confidence without one: it halves in 70 days. */
const FADING = 0.01
const BONUS: Readonly<Record<string, number>> = { feedback: 0.3, user: 0.2, project: 0.1 }

export type Document = {
  readonly id: string
  readonly text: string
  /** Key, name, description, tags and category; of a message its speaker, of an event its other fields. */
  readonly header: string
  /** The session or day to which it belongs, in which documents are in order; '' for none. */
  readonly group: string
  /** When it was last changed, or happened, in days since 1970; null if unknown. */
  readonly at: number | null
  /** Its priority independent of a question, 0 to 1; null for anything but a memory file. */
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
  /** Number of uses on this device, which slow its fading. */
  readonly uses: number
  readonly expired: boolean
}

/** The priority of a memory file, 0 to 1: by type and tags, times its confidence, faded by its decay. */
export function worthOf({ type, tags, important, confidence, decay, idleDays, uses, expired }: Worth): number {
  if (expired) return 0
  const base = important ? 1 : Math.min(1, 0.5 + (BONUS[type] ?? 0) + Math.min(0.05 * tags, 0.2))
  const rate = important ? 0 : (DECAY_RATES[decay] ?? (confidence === null ? 0 : FADING))
  const held = confidence ?? 1
  const left = idleDays > 1 ? held * Math.exp(-rate * idleDays) : held
  return base * Math.min(1, left * (1 + Math.log2(Math.max(1, uses))))
}

/** 1 for a change or use now, a half after seven days; the future is now. */
export const recency = (days: number): number => 0.5 ** (Math.max(0, days) / HALF_LIFE_DAYS)

/** The terms of a text or a passage: how often each occurs, and their number. */
type Words = { readonly counts: ReadonlyMap<string, number>; readonly size: number }
type Passage = Words & { readonly characters: number }

/** The counts of a document. */
export type Counted = Passage & {
  readonly header: ReadonlySet<string>
  /** Its passages, each with the header; itself if it is one. */
  readonly passages: readonly Passage[]
}

function counted(one: Document): Counted {
  const beside = one.group === '' || one.at === null ? one.header : `${one.header} ${dayWords(one.at)}`
  const whole = countedIn(beside, one.text)
  const found = passages(one.text)
  const each = found.length === 1 ? [whole] : found.map(text => countedIn(beside, text))
  return { ...whole, header: new Set(terms(one.header)), passages: each }
}

function countedIn(header: string, text: string): Passage {
  const all = terms(`${header}\n${text}`)
  const counts = new Map<string, number>()
  for (const term of all) counts.set(term, (counts.get(term) ?? 0) + 1)
  return { counts, size: all.length, characters: long(text) }
}

/** A session or a day as one text, and the numbers of its entries in order. */
type Group = Words & { readonly name: string; readonly members: readonly number[] }

function groupOf(name: string, members: readonly number[], all: readonly Counted[]): Group {
  const counts = new Map<string, number>()
  let size = 0
  for (const n of members) {
    const one = all[n] as Counted
    for (const [term, times] of one.counts) counts.set(term, (counts.get(term) ?? 0) + times)
    size += one.size
  }
  return { name, members, counts, size }
}

/** How many of these have each term, and the average number of terms. */
function statistics(all: readonly Words[]): { having: Map<string, number>; average: number } {
  const having = new Map<string, number>()
  for (const { counts } of all) for (const term of counts.keys()) having.set(term, (having.get(term) ?? 0) + 1)
  return { having, average: all.reduce((sum, one) => sum + one.size, 0) / (all.length || 1) }
}

/** BM25 of some texts, and the weight of each term among them. */
function bm25(wanted: readonly string[], many: number, having: ReadonlyMap<string, number>, average: number) {
  const worths = wanted.map(term => {
    const times = having.get(term) ?? 0
    return Math.max(1e-6, Math.log((many - times + 0.5) / (times + 0.5)))
  })
  const score = ({ counts, size }: Words): number =>
    wanted.reduce((sum, term, i) => {
      const times = counts.get(term) ?? 0
      return times === 0 ? sum : sum + ((worths[i] as number) * times * 2.2) / (times + 1.2 * (0.25 + (0.75 * size) / average))
    }, 0)
  return { worths, score }
}

type Statistics = ReturnType<typeof statisticsOf>

/** Statistics of all documents, independent of a question: terms of documents and passages, and groups. */
function statisticsOf(documents: readonly Document[], counted: readonly Counted[]) {
  const members = new Map<string, number[]>()
  for (const [n, { group }] of documents.entries()) {
    const there = members.get(group)
    if (there === undefined) members.set(group, [n])
    else there.push(n)
  }
  const lone = (members.get('') ?? []).map(n => counted[n] as Counted)
  members.delete('')
  const groups = [...members].map(([name, there]) => groupOf(name, there, counted))
  const [whole, passages] = [statistics(counted), counted.flatMap(one => one.passages)]
  const of = passages.length === counted.length ? whole : statistics(passages)
  return { whole, passages: passages.length, of, groups, texts: groups.length + lone.length, ofGroups: groups.length === 0 ? whole : statistics([...groups, ...lone]) }
}

/** Documents that can be ranked for several questions. */
export class Ranking {
  readonly documents: readonly Document[]
  readonly #counted: readonly Counted[]
  readonly #limits: Limits
  #known: Statistics | null = null

  /** `known`: counts of unchanged documents from before; it is updated. */
  constructor(documents: readonly Document[], known = new WeakMap<Document, Counted>(), limits: Limits = LIMITS) {
    this.documents = documents
    this.#limits = limits
    this.#counted = documents.map(one => {
      const held = known.get(one) ?? counted(one)
      known.set(one, held)
      return held
    })
  }

  get size(): number {
    return this.documents.length
  }

  /** Number of documents that have each term. */
  get having(): ReadonlyMap<string, number> {
    return this.#statistics().whole.having
  }

  /** The ids of the documents that have all of these terms among their words, or in their header. */
  idsWith(sought: readonly string[], where: 'words' | 'header'): string[] {
    const has = ({ counts, header }: Counted, term: string): boolean => (where === 'words' ? counts : header).has(term)
    return sought.length === 0 ? [] : this.documents.flatMap(({ id }, n) => (sought.every(term => has(this.#counted[n] as Counted, term)) ? [id] : []))
  }

  #statistics(): Statistics {
    return (this.#known ??= statisticsOf(this.documents, this.#counted))
  }

  /** The terms that begin with one of these, or that are one of these without an ending removed by a stem; of a single letter all pairs. */
  beginningWith(beginnings: readonly string[]): string[] {
    const { having } = this
    let found = [...having.keys()].filter(term => beginnings.some(one => term.startsWith(one) || ([...one].length === 1 && term.endsWith(one))))
    if (found.length === 0) {
      const shorter = beginnings.flatMap(word => Array.from({ length: LONGEST_ENDING }, (_, cut) => [...word].slice(0, -1 - cut)))
      found = [...new Set(shorter.filter(letters => letters.length >= LEAST_STEM).map(letters => letters.join('')))].filter(term => having.has(term))
    }
    return found.sort(byCodePoints)
  }

  /**
   * Rank all matching documents, of very many only the best, best first. `instead`: terms that replace the question's; `only`: possible
   * hits.
   */
  rank(question: string, today: number, instead: readonly string[] | null = null, only: ((id: string) => boolean) | null = null): Ranked[] {
    const { having } = this
    const isIn = this.documents.map(one => only === null || only(one.id))
    const times = (term: string): number => (only === null || !having.has(term) ? (having.get(term) ?? 0) : this.#counted.filter(({ counts }, n) => isIn[n] && counts.has(term)).length)
    const sought = instead ?? likened(spelled([...new Set(terms(question))], times), times, having.keys())
    const query = new QueryRun(this.documents, this.#counted, this.#statistics(), this.#limits, [...new Set(sought)].slice(0, MOST_TERMS), isIn)
    return query.hits(question, today)
  }
}

/** One question, and the evidence for each document. */
class QueryRun {
  readonly #share: (has: (term: string) => boolean) => number
  /** BM25 of each document, and of its best passage. */
  readonly #raw: readonly number[]
  readonly #best: readonly number[]
  readonly #most: number
  readonly #mostOfPassages: number
  readonly #byWords: readonly number[]
  readonly #ofPassage: (passage: Passage) => number
  readonly #ofGroup: ReadonlyMap<Group, number>
  /** The group of each document in one, and its position in it. */
  readonly #groups: readonly (readonly [group: Group, place: number] | undefined)[]

  constructor(
    readonly documents: readonly Document[],
    readonly counted: readonly Counted[],
    { whole, passages, of, groups, texts, ofGroups }: Statistics,
    readonly limits: Limits,
    readonly wanted: readonly string[],
    readonly isIn: readonly boolean[]
  ) {
    const { worths, score } = bm25(wanted, documents.length, whole.having, whole.average)
    const total = worths.reduce((sum, one) => sum + one, 0)
    this.#share = has => (total === 0 ? 0 : wanted.reduce((sum, term, i) => sum + (has(term) ? (worths[i] as number) : 0), 0) / total)
    this.#raw = counted.map(score)
    this.#ofPassage = of === whole ? score : bm25(wanted, passages, of.having, of.average).score
    this.#best = of === whole ? this.#raw : counted.map((one, n) => (this.#raw[n] === 0 ? 0 : Math.max(...one.passages.map(this.#ofPassage))))
    const withWords = documents.flatMap((_, n) => (isIn[n] && this.#raw[n] !== 0 ? [n] : []))
    this.#byWords = this.#isCut ? first(withWords, limits.best, (a, b) => (this.#raw[b] as number) - (this.#raw[a] as number) || byCodePoints(this.#id(a), this.#id(b))) : withWords
    this.#most = greatest(withWords.map(n => this.#raw[n] as number))
    this.#mostOfPassages = greatest(this.#byWords.map(n => this.#best[n] as number))
    const ofGroup = bm25(wanted, texts, ofGroups.having, ofGroups.average).score
    this.#ofGroup = new Map(groups.map(group => [group, ofGroup(group)]))
    const placed: (readonly [Group, number] | undefined)[] = documents.map(() => undefined)
    for (const group of groups) for (const [place, n] of group.members.entries()) placed[n] = [group, place]
    this.#groups = placed
  }

  get #isCut(): boolean {
    return this.documents.length > this.limits.all
  }

  #id(n: number): string {
    return (this.documents[n] as Document).id
  }

  hits(question: string, today: number): Ranked[] {
    const named = daysNamed(question, today)
    const dated = new Set(this.documents.flatMap(({ at }, n) => (this.isIn[n] && at !== null && named.some(days => isAmong(at, days)) ? [n] : [])))
    const [isWhen, isNumber, ofGroups] = [asksWhen(question), asksNumber(question), greatest(this.#ofGroup.values())]
    const bests = new Map<Group, number>()
    const valuesOf = (n: number): Values => {
      const [one, { counts, header }] = [this.documents[n] as Document, this.counted[n] as Counted]
      const [group, place] = this.#groups[n] ?? []
      const [words, isDated] = [this.#own(n), dated.has(n) ? 1 : 0]
      if (group === undefined || place === undefined) {
        const isFile = one.salience !== null
        return [ALONE, {
          words,
          cover: this.#share(term => counts.has(term)),
          day: isDated,
          file: isFile ? 1 : 0,
          header: isFile ? this.#share(term => header.has(term)) : 0,
          salience: one.salience ?? 0,
          recency: !isFile || one.at === null ? 0 : recency(today - one.at)
        }]
      }
      const { members } = group
      const beside = [place - 2, place - 1, place + 1, place + 2].flatMap(at => members[at] ?? []).map(near => this.#own(near))
      const before = members[place - 1]
      const best = bests.get(group) ?? greatest(members.map(near => this.#own(near)))
      bests.set(group, best)
      return [GROUPED, {
        words,
        cover: this.#inSight(n, members, place),
        date: isDated,
        beside: beside.length === 0 ? words : beside.reduce((sum, near) => sum + near, 0) / beside.length,
        answer: before !== undefined && isQuestion((this.documents[before] as Document).text) ? this.#own(before) : 0,
        best,
        group: ofGroups === 0 ? 0 : (this.#ofGroup.get(group) ?? 0) / ofGroups,
        by: this.wanted.some(term => header.has(term)) ? 1 : 0,
        when: isWhen && hasTime(one.text) ? 1 : 0,
        number: isNumber && hasNumber(one.text) ? 1 : 0,
        question: isQuestion(one.text) ? 1 : 0,
        long: Math.log10(Math.max((this.counted[n] as Counted).characters, USUAL) / USUAL)
      }]
    }
    const found = [...this.#looked(dated)].map(n => summed(this.#id(n), valuesOf(n)))
    return found.sort((a, b) => b.score - a.score || byCodePoints(a.id, b.id))
  }

  /** The evidence for a document itself. */
  #own(n: number): number {
    // If no possible hit has a word, its neighbours may have some.
    const share = (score: number, most: number): number => Math.min(1, score / (most || 1))
    return (share(this.#raw[n] as number, this.#most) + share(this.#best[n] as number, this.#mostOfPassages)) / 2
  }

  /** The documents that can be hits: all with evidence; of very many only the best, and their neighbours. */
  #looked(dated: ReadonlySet<number>): Set<number> {
    let talks = [...this.#ofGroup].filter(([, score]) => score > 0)
    let found = new Set([...this.#byWords, ...dated])
    if (this.#isCut) {
      const { best, groups } = this.limits
      const at = (n: number): number => (this.documents[n] as Document).at as number
      const latest = first([...dated], best, (a, b) => at(b) - at(a) || byCodePoints(this.#id(b), this.#id(a)))
      found = new Set([...this.#byWords, ...latest].flatMap(n => {
        const [group, place] = this.#groups[n] ?? []
        return group === undefined || place === undefined ? [n] : group.members.slice(Math.max(0, place - 2), place + 3)
      }))
      talks = first(talks, groups, ([a, one], [b, other]) => other - one || byCodePoints(b.name, a.name))
    }
    for (const [{ members }] of talks) for (const n of members) found.add(n)
    return new Set([...found].filter(n => this.isIn[n]))
  }

  /**
   * The share of terms in the best passage of a document, and in the two on either side in its group, the second only beyond a short one.
   */
  #inSight(n: number, members: readonly number[], place: number): number {
    const { passages } = this.counted[n] as Counted
    const scores = passages.map(this.#ofPassage)
    const best = scores.findIndex(score => score >= greatest(scores) - ROUNDING)
    const of = (at: number): readonly Passage[] => (members[at] === undefined ? [] : (this.counted[members[at]] as Counted).passages)
    // Each document has at least one passage: at most two on either side are examined.
    const before = [...of(place - 2), ...of(place - 1), ...passages.slice(0, best)].reverse()
    const after = [...passages.slice(best + 1), ...of(place + 1), ...of(place + 2)]
    const seen = [passages[best] as Passage]
    for (const [near, further] of [before, after]) {
      if (near !== undefined) seen.push(near)
      if (near !== undefined && further !== undefined && near.characters < SHORT) seen.push(further)
    }
    return this.#share(term => seen.some(({ counts }) => counts.has(term)))
  }
}

/** The weights of a document, and its value for each, 0 to 1. */
type Values = readonly [typeof ALONE, Readonly<Record<keyof typeof ALONE, number>>] | readonly [typeof GROUPED, Readonly<Record<keyof typeof GROUPED, number>>]

/** The sum of the parts; each is rounded as in Python, and added in whole numbers, so that the order does not matter. */
function summed(id: string, [weights, values]: Values): Ranked {
  const parts: Partial<Record<Part, number>> = {}
  let sum = 0
  for (const [part, weight] of Object.entries(weights) as [Part, number][]) {
    const counts = Math.round(weight * (values as Readonly<Record<string, number>>)[part]! * DIGITS)
    if (counts === 0) continue
    parts[part] = counts / DIGITS
    sum += counts
  }
  return { id, score: sum / DIGITS, parts }
}

const greatest = (values: Iterable<number>): number => {
  let most = 0
  for (const value of values) most = Math.max(most, value)
  return most
}

/** The first `most` in an order. */
const first = <T>(all: readonly T[], most: number, order: (a: T, b: T) => number): T[] => [...all].sort(order).slice(0, most)
