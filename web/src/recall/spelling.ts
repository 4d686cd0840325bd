/**
 * A question's terms that no document has, as the ones that they are one slip of the hand away from: a letter too few, too many,
 * another, or two that changed places. A term that some document has is never changed.
 */

import { byCodePoints } from '../core/bytes.ts'

const LEAST_LETTERS = 5
const MOST_LETTERS = 30
/** Of a question of more different terms none is changed: it says enough without. */
const MOST_TERMS = 12
const ALPHABETS = ['abcdefghijklmnopqrstuvwxyz', 'абвгдежзиклмнопрстуфхцчшщъыьэюя', 'αβγδεζηθικλμνξοπρστυφχψω']

/** The same terms, each that no document has as the near one that most have, of equal ones the first. `having`: how many have a term. */
export function spelled(terms: readonly string[], having: (term: string) => number): string[] {
  if (new Set(terms).size > MOST_TERMS) return [...terms]
  return terms.map(term => {
    const letters = [...term].length
    return letters >= LEAST_LETTERS && letters <= MOST_LETTERS && having(term) === 0 ? near(term, having) : term
  })
}

function near(term: string, having: (term: string) => number): string {
  let [best, most] = [term, 0]
  for (const other of slips(term)) {
    const times = having(other)
    if (times > most || (times > 0 && times === most && byCodePoints(other, best) < 0)) [best, most] = [other, times]
  }
  return best
}

/** What is one slip away, of words in letters that are known here. */
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
