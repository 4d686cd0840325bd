/** Ranges of time in words: "last week", "may 2023", "7d", "since friday", "from 2023-05-01 to 2023-05-14". */

import { split } from '../core/white.ts'
import { MemoryError } from '../device/errors.ts'
import { daysNamed, MONTHS } from './dates.ts'

/** Milliseconds since 1970: the first in the range, and the first after it. */
export type TimeRange = readonly [begin: number, end: number]
/** A time zone: the day of a time, counted from 1970, and the time at which clocks show a local time, given as if in UTC. */
export type Zone = { readonly dayOf: (at: number) => number; readonly momentOf: (shown: number) => number }

/** The start of the calendar, the year 1, and the end after its last day. */
export const ALWAYS = -62_135_596_800_000
export const FOREVER = 253_402_300_800_000
const EVER: TimeRange = [ALWAYS, FOREVER]
const MOST_RANGE = 100
const DAY_MS = 86_400_000
const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: DAY_MS, w: 7 * DAY_MS }
const HINT = 'For example: 7d, yesterday, last week, last 3 months, friday, may 2023, 2023-05-08, since friday, before june 2024 or from 2023-05-01 to 2023-05-14.'
const WEEKDAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']
const MONTH = MONTHS.join('|')
const SHORT = new RegExp(`\\b(${MONTHS.map(name => name.slice(0, 3)).join('|')}|sept)\\b\\.?`, 'g')
const NAMED = new RegExp(
  `^(?:\\d{4}(?:-\\d\\d(?:-\\d\\d)?)?|(?:\\d{1,2}(?:st|nd|rd|th)?(?: of)? )?(?:${MONTH})(?:,? (?:of )?\\d{4})?|` +
    `(?:${MONTH}) \\d{1,2}(?:st|nd|rd|th)?(?:,? \\d{4})?|today|yesterday|(?:this|last) (?:week|month|year)|\\d{1,3} (?:day|week)s? ago)$`
)
const BOTH = /^(?:from (.+) (?:to|until|till) (.+)|between (.+) and (.+))$/
const ONE_END = /^(since|from|after|until|till|up to|before) (.+)$/
const WEEKDAY = new RegExp(`^(last )?(${WEEKDAYS.join('|')})$`)
/** Numbers in words before a unit, and a unit without a number, of which there is one. */
const NUMBERS = ['a|an|one', 'a couple of|two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve'].map(words => words.split('|'))
const UNIT = '(?:minute|hour|day|week|month|year)'
const NUMBER = new RegExp(`\\b(${NUMBERS.flat().sort((one, other) => other.length - one.length).join('|')}) (?=${UNIT}s?\\b)`, 'g')
const ONE = new RegExp(`^(past|last(?= (?:minute|hour|day)$)) (?=${UNIT}$)`)
const WEEKEND = /^(?:(this|last) )?weekend$/
const LAST_NAMED = new RegExp(`^last (${MONTH})$`)
const LAST = /^(?:last|past) (\d{1,4}) (minute|hour|day|week|month|year)s?$/
const AGO = /^(\d{1,4}) (minute|hour|month|year)s? ago$/
const BACK = /^(\d{1,6})([smhdw])$/
/** A day or a week in digits, alone or with a time and an offset (ISO 8601). */
const MOMENT =
  /^(\d{4})(?:(-?)(\d\d)\2(\d\d)|(-?)w(\d\d)(?:\5(\d))?)(?:[t ]([01]\d|2[0-3])(?:(:?)([0-5]\d)(?:\9([0-5]\d)(?:[.,](\d{1,9}))?)?)?(?:z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?)?$/

/** These words do not name a time. */
class NotNamed extends Error {}

function within([begin, end]: TimeRange, [from, until]: TimeRange): TimeRange {
  const both: TimeRange = [Math.max(begin, from), Math.min(end, until)]
  if (both[0] >= both[1]) throw new MemoryError('usage', 'the time range is empty: it ends before it begins; give a beginning before the end, or one of them')
  return both
}

/** Return the intersection of all given ranges: from the beginning of `since`, to the end of `until`, in `when`. */
export function sinceUntil({ since, until, when }: { readonly since?: string | undefined; readonly until?: string | undefined; readonly when?: string | undefined }, now: number, zone: Zone): TimeRange {
  const all = [[since, 'since '], [until, 'until '], [when, '']] as const
  return all.reduce((found, [said, before]) => (said === undefined ? found : within(found, timeRange(said, now, zone, before))), EVER)
}

/**
 * Return the range that words name, with `before` in front of them, relative to `now`. Days, weeks (from Monday on), months and years are
 * those of a zone. Without a year, the last one that has begun is meant.
 */
export function timeRange(said: string, now: number, zone: Zone, before = ''): TimeRange {
  if ([...said].length > MOST_RANGE) throw new MemoryError('usage', `a time range has at most ${MOST_RANGE} characters`, HINT)
  const text = ['in ', 'on ', 'during '].reduce(withoutStart, split(before + said.toLowerCase()).join(' '))
  const point = (words: string): TimeRange => pointOf(words, now, zone)
  try {
    const both = BOTH.exec(text)
    if (both !== null) {
      let first = (both[1] ?? both[3]) as string
      const last = (both[2] ?? both[4]) as string
      const year = /,? \d{4}$/.exec(last)
      if (year !== null && !/\b\d{4}\b/.test(first)) first += year[0]
      return within([point(first)[0], FOREVER], [ALWAYS, point(last)[1]])
    }
    const [, end, words = ''] = ONE_END.exec(text) ?? []
    const [first, after] = point(end === undefined ? text : words)
    if (end === 'since' || end === 'from') return [first, FOREVER]
    if (end === 'after') return [after, FOREVER]
    if (end !== undefined) return [ALWAYS, end === 'before' ? first : after]
    if (after !== first + 1) return [first, after]
    const [whole, , , , , , , , , , minute, second, fraction] = MOMENT.exec(text) ?? []
    // A time back from now is an open range: it includes later times, by a clock that is ahead.
    if (whole === undefined) return [first, FOREVER]
    return [first, first + (fraction !== undefined ? 1 : second !== undefined ? 1000 : minute !== undefined ? 60_000 : 3_600_000)]
  } catch (error) {
    if (!(error instanceof NotNamed)) throw error
    throw new MemoryError('usage', `${JSON.stringify([...said].slice(0, 40).join(''))} is not a time range`, HINT)
  }
}

const withoutStart = (text: string, start: string): string => (text.startsWith(start) ? text.slice(start.length) : text)

/** Return one end of a range: days, or a time. */
function pointOf(words: string, now: number, zone: Zone): TimeRange {
  const named = withoutStart(words.replace(SHORT, (_, name: string) => MONTHS.find(one => one.startsWith(name.slice(0, 3))) as string), 'the ')
  const counted = named.replace(NUMBER, (_, word: string) => `${NUMBERS.findIndex(one => one.includes(word)) + 1} `).replace(ONE, '$1 1 ')
  const text = counted === 'day before yesterday' ? '2 days ago' : counted
  const today = zone.dayOf(now)
  const [, isLast, weekday] = WEEKDAY.exec(text) ?? []
  if (weekday !== undefined) {
    const back = (((today + 3) % 7) - WEEKDAYS.indexOf(weekday) + 7) % 7
    const day = today - (back || (isLast ? 7 : 0))
    return daysIn(day, day, zone)
  }
  const weekend = WEEKEND.exec(text)
  if (weekend !== null) {
    const past = (today + 3) % 7
    const saturday = today + 5 - past - (weekend[1] === 'last' || (weekend[1] === undefined && past < 5) ? 7 : 0)
    return daysIn(saturday, saturday + 1, zone)
  }
  const [, lastNamed] = LAST_NAMED.exec(text) ?? []
  if (lastNamed !== undefined) {
    const at = new Date(today * DAY_MS)
    const month = MONTHS.indexOf(lastNamed)
    return daysNamedIn(at.getUTCFullYear() - (month >= at.getUTCMonth() ? 1 : 0), month + 1, null, zone)
  }
  const [, number, unit = ''] = LAST.exec(text) ?? []
  if (number !== undefined) return momentAt(backFrom(today, now, Number(number), unit, zone))
  const [, ago, of = ''] = AGO.exec(text) ?? []
  if (ago !== undefined) {
    if (of === 'minute' || of === 'hour') return momentAt(backFrom(today, now, Number(ago), of, zone))
    const months = monthsOf(today) - Number(ago) * (of === 'year' ? 12 : 1)
    return daysNamedIn(Math.floor(months / 12), of === 'month' ? (months % 12) + 1 : null, null, zone)
  }
  if (NAMED.test(text)) {
    const [days, ...others] = daysNamed(`in ${text}`, today)
    if (days === undefined || others.length > 0) throw new NotNamed()
    if ('first' in days) return daysIn(days.first, days.last, zone)
    return days.year === null ? lastBegun(days.month as number, days.day, today, zone) : daysNamedIn(days.year, days.month, days.day, zone)
  }
  return written(text, now, zone)
}

/** Number of calendar months up to that of a day. */
function monthsOf(day: number): number {
  const at = new Date(day * DAY_MS)
  return at.getUTCFullYear() * 12 + at.getUTCMonth()
}

/** Return the time some units before now; for months and years the same day of the calendar, or the last of its month. */
function backFrom(today: number, now: number, number: number, unit: string, zone: Zone): number {
  const size = unit === 'month' || unit === 'year' ? undefined : UNITS[unit[0] as string]
  if (size !== undefined) return now - number * size
  const months = monthsOf(today) - number * (unit === 'year' ? 12 : 1)
  const [year, month] = [Math.floor(months / 12), (months % 12) + 1]
  const first = dayOf(year, month, 1)
  return daysIn(Math.min(first + new Date(today * DAY_MS).getUTCDate() - 1, lastOfMonth(year, month)), first, zone)[0]
}

function momentAt(at: number): TimeRange {
  return [at, at + 1]
}

/** A time back from now, or a week, a day or a time in digits. */
function written(text: string, now: number, zone: Zone): TimeRange {
  const [, number, unit = ''] = BACK.exec(text) ?? []
  if (number !== undefined) return momentAt(now - Number(number) * (UNITS[unit] as number))
  const [whole, year, , month, date, , week, weekday, hour, , minute = 0, second = 0, fraction = '', sign, hours = 0, minutes = 0] = MOMENT.exec(text) ?? []
  if (whole === undefined) throw new NotNamed()
  const day = week === undefined ? dayOf(Number(year), Number(month), Number(date)) : weekdayOf(Number(year), Number(week), Number(weekday ?? 1))
  if (hour === undefined) return daysIn(day, week === undefined || weekday !== undefined ? day : day + 6, zone)
  const at = day * DAY_MS + ((Number(hour) * 60 + Number(minute)) * 60 + Number(second)) * 1000 + Number(fraction.padEnd(3, '0').slice(0, 3))
  if (sign === undefined && !text.endsWith('z')) return momentAt(zone.momentOf(at))
  return momentAt(at - (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000)
}

/** A day of the week of a year (ISO 8601): the first week has the 4th of January, the last the 28th of December. */
function weekdayOf(year: number, week: number, weekday: number): number {
  const fourth = dayOf(year, 1, 4)
  const first = fourth - ((((fourth + 3) % 7) + 7) % 7)
  const day = first + (week - 1) * 7
  if (week < 1 || day > dayOf(year, 12, 28) || weekday < 1 || weekday > 7) throw new NotNamed()
  return day + weekday - 1
}

/** A day of the calendar, counted from 1970. */
function dayOf(year: number, month: number, day: number): number {
  const at = new Date(0)
  at.setUTCFullYear(year, month - 1, day)
  if (year < 1 || year > 9999 || at.getUTCMonth() !== month - 1 || at.getUTCDate() !== day) throw new NotNamed()
  return at.getTime() / DAY_MS
}

function lastOfMonth(year: number, month: number): number {
  for (let day = 31; day > 28; day--) {
    try {
      return dayOf(year, month, day)
    } catch (error) {
      if (!(error instanceof NotNamed)) throw error
    }
  }
  return dayOf(year, month, 28)
}

/** All of a day, month or year. */
function daysNamedIn(year: number, month: number | null, day: number | null, zone: Zone): TimeRange {
  const first = dayOf(year, month ?? 1, day ?? 1)
  if (day !== null) return daysIn(first, first, zone)
  return daysIn(first, month === null ? dayOf(year, 12, 31) : lastOfMonth(year, month), zone)
}

/** The last of these that has begun. The 29th of February is not in every year. */
function lastBegun(month: number, day: number | null, today: number, zone: Zone): TimeRange {
  const now = new Date(today * DAY_MS).getUTCFullYear()
  for (let year = now; year > now - 9; year--) {
    let begun: number
    try {
      begun = dayOf(year, month, day ?? 1)
    } catch (error) {
      if (!(error instanceof NotNamed)) throw error
      continue
    }
    if (begun <= today) return daysNamedIn(year, month, day, zone)
  }
  throw new NotNamed()
}

function daysIn(first: number, last: number, zone: Zone): TimeRange {
  const after = (last + 1) * DAY_MS
  if (after > FOREVER) throw new NotNamed()
  return [zone.momentOf(first * DAY_MS), after < FOREVER ? zone.momentOf(after) : FOREVER]
}
