/**
 * The terms of a text: words without case and accents, English ones as their stems, Arabic ones without their article, letter pairs of
 * scripts without spaces. Stop words, like "the", are not terms. A letter and its sign are one word: C, C++, C#.
 */

import { stem } from './porter.ts'

/** Scripts without spaces between words: Thai to Khmer, kana, ideographs. */
const RUNS = '\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3040-\\u30ff\\u3400-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}'
const SIGNED = '[a-z](?:\\+\\+(?![a-z_])|\\+(?![a-z0-9_+=])|#(?![a-z_]))'
const WORD = new RegExp(`[${RUNS}]+|${SIGNED}|(?:(?![${RUNS}])[\\p{L}\\p{N}])+`, 'gu')
const UNSPACED = new RegExp(`^[${RUNS}]`, 'u')
/** Prefixes written as one word with an Arabic noun: "the", also after "and", "with", "so", "as" and "for". */
const ARTICLE = /^(?:[وبفك]?ال|لل)(?=[\u0620-\u064a]{3})/
const STOP_WORDS = new Set(
  (
    'a about after all also am an and any are as at be because been before being but by can could did do does doing for from had has have ' +
    'he her hers him his how i if in into is it its just me my no not of on or our ours she should so some such than that the their them ' +
    'then there these they this those to too us was we were what when where which while who whom why will with would you your yours'
  ).split(' ')
)
const ASCII = /^[\x00-\x7f]*$/

/** Tell whether a mark combines with the letter before it: marks of other classes change places with one of the last class. */
const isAccent = (mark: string): boolean => mark === '\u0345' || `x\u0345${mark}`.normalize('NFD') !== `x\u0345${mark}`

/** A text without case: letters with several lower-case forms, such as a capital sharp s, have one. */
export const uncased = (text: string): string =>
  ASCII.test(text) ? text.toLowerCase() : text.replace(/[^ı]+/g, part => part.toLowerCase().toUpperCase().toLowerCase().replaceAll('ς', 'σ'))

/** A text without case and accents. */
export function fold(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase()
  return uncased(text)
    .normalize('NFKD')
    .replace(/\p{M}/gu, mark => (isAccent(mark) ? '' : mark))
    .toLowerCase()
    .replaceAll('ς', 'σ')
}

/** The words of a text without case and accents; a run of a script without spaces is one. */
export const split = (text: string): string[] => fold(text).match(WORD) ?? []

function termsOf(word: string): string[] {
  if (ASCII.test(word)) return STOP_WORDS.has(word) ? [] : [/[+#]$/.test(word) ? word : stem(word)]
  if (!UNSPACED.test(word)) return [word.replace(ARTICLE, '')]
  const letters = [...word]
  return Array.from({ length: Math.max(1, letters.length - 1) }, (_, n) => letters.slice(n, n + 2).join(''))
}

/** The terms of a text in order, with repeats. */
export const terms = (text: string): string[] => split(text).flatMap(termsOf)

/** Maximum characters of a query. */
export const MOST_QUERY = 4000
const MOST_WORDS = 64
/** Minimum letters of a word that may also be the beginning of a longer one. */
export const LEAST_BEGINNING = 4

/** Return why a query cannot be searched; null if it can. */
export function queryFault(query: string): string | null {
  if ([...query].length > MOST_QUERY) return `a query has at most ${MOST_QUERY.toLocaleString('en')} characters`
  return split(query).length === 0 ? 'the query has no words' : null
}

/** The distinct words of a query in order; of scripts without spaces every letter pair. */
export const wordsOf = (query: string): string[] => [...new Set(split(query).flatMap(word => (UNSPACED.test(word) ? terms(word) : [word])))].slice(0, MOST_WORDS)

/** For a query without a known word: possible beginnings of longer words, and single letters of scripts without spaces. */
export function beginningsOf(query: string): string[] {
  const words = [...new Set(split(query))].map(word => ({ word, letters: [...word].length, isSpaced: !UNSPACED.test(word) }))
  return words.filter(({ letters, isSpaced }) => (isSpaced ? letters >= LEAST_BEGINNING : letters === 1)).slice(0, MOST_WORDS).map(({ word }) => word)
}
