/**
 * The days that a question names in English: "on 3 May", "in 2025", "last week", 2026-05-03. Days are counted from 1970; today is passed
 * in.
 */

export const MONTHS = ['january', 'february', 'march', 'april', 'may', 'june', 'july', 'august', 'september', 'october', 'november', 'december']
const NAME = MONTHS.join('|')
const ISO = /\b(\d{4})-(\d\d)(?:-(\d\d))?\b/g
const DAY_FIRST = new RegExp(`\\b(\\d{1,2})(?:st|nd|rd|th)?(?: of)? (${NAME})\\b(?:,? (\\d{4})\\b)?`, 'g')
const MONTH_FIRST = new RegExp(`\\b(${NAME}) (\\d{1,2})(?:st|nd|rd|th)?\\b(?:,? (\\d{4})\\b)?`, 'g')
const MONTH = new RegExp(`\\b(${NAME})(?: (?:of )?(\\d{4})\\b)?`, 'g')
const MONTH_AFTER = /\b(?:in|during|of|since|until|before|after|last|this|early|mid|late) $/
const YEAR = /\b(?:in|during|of|since|until|before|after) (\d{4})\b/g
const AGO = /\b(\d{1,3}) (day|week)s? ago\b/g
const NEAR = /\b(today|yesterday|(?:this|last) (?:week|month|year))\b/g
const DAY_MS = 86_400_000

/** Named days: those between the first and the last, or all of a day, month or year; null: any. */
export type Days = { readonly first: number; readonly last: number } | { readonly year: number | null; readonly month: number | null; readonly day: number | null }

const partsOf = (day: number): [year: number, month: number, day: number] => {
  const at = new Date(day * DAY_MS)
  return [at.getUTCFullYear(), at.getUTCMonth() + 1, at.getUTCDate()]
}
const named = (year: number | null, month: number | null = null, day: number | null = null): Days => ({ year, month, day })
const between = (first: number, last: number): Days => ({ first, last })

/** Tell whether a day is among the named ones. */
export function isAmong(date: number, days: Days): boolean {
  if ('first' in days) return days.first <= date && date <= days.last
  const [y, m, d] = partsOf(date)
  return (days.year ?? y) === y && (days.month ?? m) === m && (days.day ?? d) === d
}

/** The words of a day that are searched in its entries: "12 may 2026". */
export function dayWords(date: number): string {
  const [year, month, day] = partsOf(date)
  return `${day} ${MONTHS[month - 1]} ${year}`
}

/** Return the days that a question names. */
export function daysNamed(question: string, today: number): Days[] {
  let text = question.toLowerCase()
  const number = (digits: string | undefined): number | null => (digits ? Number(digits) : null)
  const found = [...text.matchAll(ISO)].map(([, year, month, day]) => named(Number(year), Number(month), number(day)))
  text = text.replace(ISO, ' ')
  for (const [form, day, month] of [[DAY_FIRST, 1, 2], [MONTH_FIRST, 2, 1]] as const) {
    for (const one of text.matchAll(form)) found.push(named(number(one[3]), MONTHS.indexOf(one[month] as string) + 1, Number(one[day])))
    text = text.replace(form, ' ')
  }
  for (const one of text.matchAll(MONTH)) {
    const [, name = '', year] = one
    // "may" and "march" have other meanings too.
    if (year || !['may', 'march'].includes(name) || MONTH_AFTER.test(text.slice(0, one.index))) found.push(named(number(year), MONTHS.indexOf(name) + 1))
  }
  for (const [, year] of text.replace(MONTH, ' ').matchAll(YEAR)) found.push(named(Number(year)))
  for (const [, count, unit] of text.matchAll(AGO)) {
    const [middle, around] = [today - Number(count) * (unit === 'week' ? 7 : 1), unit === 'week' ? 3 : 0]
    found.push(between(middle - around, middle + around))
  }
  return [...found, ...[...text.matchAll(NEAR)].map(([, words = '']) => near(words, today))]
}

/** Today, yesterday, or this or the last week (from Monday on), month or year. */
function near(words: string, today: number): Days {
  const [which, unit] = words.split(' ')
  if (unit === undefined) return between(today - (which === 'yesterday' ? 1 : 0), today - (which === 'yesterday' ? 1 : 0))
  const isLast = which === 'last'
  const [year, month, day] = partsOf(today)
  if (unit === 'year') return named(year - (isLast ? 1 : 0))
  if (unit === 'month') {
    const [y, m] = isLast ? partsOf(today - day) : [year, month]
    return named(y, m)
  }
  const monday = today - ((new Date(today * DAY_MS).getUTCDay() + 6) % 7) - (isLast ? 7 : 0)
  return between(monday, monday + 6)
}
