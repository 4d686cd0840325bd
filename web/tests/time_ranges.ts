/** Ranges of time in words, in UTC. */

import { MemoryError } from '../src/device/errors.ts'
import { sinceUntil, timeRange, type TimeRange, type Zone } from '../src/recall/time_ranges.ts'
import type { Judge } from './judging.ts'

const UTC: Zone = { dayOf: at => Math.floor(at / 86_400_000), momentOf: shown => shown }

function unlessRefused(range: () => TimeRange): TimeRange | null {
  try {
    return range()
  } catch (error) {
    if (error instanceof MemoryError && error.kind === 'usage') return null
    throw error
  }
}

export const timeRanges: Judge = (all, court) => {
  for (const { now, said, range } of all.ranges) court.same(unlessRefused(() => timeRange(said, now, UTC)), range, `${said} at ${now}`)
  for (const { now, range, ...asked } of all.together) court.same(unlessRefused(() => sinceUntil(asked, now, UTC)), range, `${JSON.stringify(asked)} at ${now}`)
}
