/**
 * Features of a message or an event besides its words: whether it asks, and has a time or a number; and whether a question asks for these.
 */

import { trimEnd } from '../core/white.ts'
import { MONTHS } from './dates.ts'

/** A whole word, as in Python. */
const whole = (words: string): string => `(?<![\\p{L}\\p{N}_])(?:${words})(?![\\p{L}\\p{N}_])`
const DIGIT = '\\p{Nd}'
const TIME = new RegExp(
  whole(
    `${DIGIT}{1,2}:${DIGIT}{2}|${DIGIT}{4}-${DIGIT}{2}|(?:19|20)${DIGIT}{2}|today|yesterday|tomorrow|tonight|ago|(?:last|next|this) [\\p{L}\\p{N}_]+|` +
      `(?:mon|tues|wednes|thurs|fri|satur|sun)day|${MONTHS.filter(month => month !== 'may').join('|')}|in may`
  ),
  'iu'
)
const NUMBER = new RegExp(`${DIGIT}|${whole('one|two|three|four|five|six|seven|eight|nine|ten|once|twice|dozen|hundred')}`, 'iu')
const WHEN = new RegExp(whole('when|what (?:day|date|month|year|time)|how long ago'), 'iu')
const HOW_MANY = new RegExp(whole('how (?:many|much|old|often|long|far|big|tall|high|heavy|fast|large)'), 'iu')

export const hasTime = (text: string): boolean => TIME.test(text)
export const hasNumber = (text: string): boolean => NUMBER.test(text)
export const asksWhen = (question: string): boolean => WHEN.test(question)
export const asksNumber = (question: string): boolean => HOW_MANY.test(question)
export const isQuestion = (text: string): boolean => /[?？؟]$/.test(trimEnd(text))
