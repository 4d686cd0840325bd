/**
 * Replace a question's unknown terms with indexed ones that are one typing error away (a letter missing, added, changed, or two swapped),
 * else with the most similar ones, such as the same word in another language. A known term is never replaced.
 */

import { byCodePoints } from '../core/bytes.ts'

const LEAST_LETTERS = 5
const MOST_LETTERS = 30
/** In a question of more distinct terms none is replaced: it has enough without. */
const MOST_TERMS = 12
/** Similar terms share more than this fraction of the shorter one's trigrams, and at least this number. */
const LIKE = 0.5
const LEAST_THREES = 3
const ALL_LETTERS = /^\p{L}+$/u
const ALPHABETS = ['abcdefghijklmnopqrstuvwxyz', 'абвгдежзиклмнопрстуфхцчшщъыьэюя', 'αβγδεζηθικλμνξοπρστυφχψω']

/** Replace each unknown term with the nearest one that most documents have; ties by order. `having`: number of documents with a term. */
export function spelled(terms: readonly string[], having: (term: string) => number): string[] {
  if (new Set(terms).size > MOST_TERMS) return [...terms]
  return terms.map(term => (isToChange(term, having) ? near(term, having) : term))
}

/** Replace each unknown term with the most similar one, then the one that most documents have; ties by order. */
export function likened(terms: readonly string[], having: (term: string) => number, vocabulary: Iterable<string>): string[] {
  const unknown = new Set(terms).size > MOST_TERMS ? [] : terms.filter(term => ALL_LETTERS.test(term) && isToChange(term, having))
  if (unknown.length === 0) return [...terms]
  const best = new Map(unknown.map(term => [term, { wanted: threes(term), share: LIKE, times: 0, like: term }]))
  for (const other of vocabulary) {
    if (!ALL_LETTERS.test(other) || [...other].length > MOST_LETTERS) continue
    const its = threes(other)
    for (const one of best.values()) {
      const common = [...its].filter(three => one.wanted.has(three)).length
      const share = common / Math.min(its.size, one.wanted.size)
      if (common < LEAST_THREES || share <= LIKE || share < one.share) continue
      const times = having(other)
      if (times === 0) continue
      if (share > one.share || times > one.times || (times === one.times && byCodePoints(other, one.like) < 0)) Object.assign(one, { share, times, like: other })
    }
  }
  return terms.map(term => best.get(term)?.like ?? term)
}

/** The trigrams of a term; its ends count as a letter. */
function threes(term: string): Set<string> {
  const letters = ['', ...term, '']
  return new Set([...term].map((_, n) => `${letters[n]}\n${letters[n + 1]}\n${letters[n + 2]}`))
}

function isToChange(term: string, having: (term: string) => number): boolean {
  const letters = [...term].length
  return letters >= LEAST_LETTERS && letters <= MOST_LETTERS && having(term) === 0
}

function near(term: string, having: (term: string) => number): string {
  let [best, most] = [term, 0]
  for (const other of slips(term)) {
    const times = having(other)
    if (times > most || (times > 0 && times === most && byCodePoints(other, best) < 0)) [best, most] = [other, times]
  }
  return best
}

/** All strings one typing error away, in the known letters. */
function* slips(term: string): Generator<string> {
  const letters = ALPHABETS.find(one => one.includes(term[0] as string)) ?? ''
  if (![...term].every(letter => letters.includes(letter))) return
  for (let at = 0; at <= term.length; at++) {
    const [before, after] = [term.slice(0, at), term.slice(at)]
    for (const letter of letters) yield before + letter + after
    if (after === '') continue
    yield before + after.slice(1)
    for (const letter of letters) yield before + letter + after.slice(1)
    if (after.length > 1) yield `${before}${after[1]}${after[0]}${after.slice(2)}`
  }
}
