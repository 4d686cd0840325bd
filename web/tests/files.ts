/** What a memory is: keys, files, index, timeline, the blob, and the merge of two files (FORMAT.md 1 and 5). */

import { dayHere } from '../src/device/days.ts'
import { fromHex, fromUtf8, hex, sha256, unlessRefused, utf8 } from '../src/core/bytes.ts'
import { writeBlob } from '../src/core/blob.ts'
import { readBlob } from '../src/core/blob_reading.ts'
import { clockAfterSeeing, clockMs, correctedClock, nextClock } from '../src/core/clock.ts'
import { capIndex, renderIndex } from '../src/core/index.ts'
import { conflictName, isKey, isScope, keyOfForeignName, splitConflictName } from '../src/core/keys.ts'
import { isUnclosed } from '../src/core/front_matter.ts'
import { editFile, refuseOverUnclosed } from '../src/core/header_edit.ts'
import { parseFile, renderFile } from '../src/core/memory_file.ts'
import { merge3, mergeFields, mergeLines } from '../src/core/merge3.ts'
import { type Move, newestMove, readMove, readVault } from '../src/core/program_events.ts'
import { foreignId, instant, isEvent, lineOf, normalTs, parseLines, splitOwnId, union } from '../src/core/timeline.ts'
import type { Judge } from './judging.ts'

export const memoryFile: Judge = (all, court) => {
  for (const row of all.read) {
    const read = parseFile(utf8(row.file))
    court.same([read.fields, read.body, renderFile(read)], [row.fields, row.body, row.rendered], row.about)
  }
  for (const row of all.render) court.same(renderFile(row), row.file, row.about)
  for (const row of all.edit) {
    const edited = unlessRefused(() => editFile(utf8(row.file), new Map(row.changes), row.body, new Map(row.stamps)))
    court.same(edited && fromUtf8(edited), row.edited, row.about)
  }
  for (const { about, text, unclosed } of all.unclosed) {
    court.same(isUnclosed(text), unclosed, about)
    const over = (body: string): unknown => unlessRefused(() => refuseOverUnclosed(utf8(text), body) ?? body)
    court.same([over('A new text.'), over(text)], [unclosed ? null : 'A new text.', text], about)
  }
  for (const row of all.bad) court.refuses(() => parseFile(fromHex(row.file_hex)), row.about, row.error)
  for (const row of all.sizes) {
    const data = utf8(row.parts.map(([text, times]: [string, number]) => text.repeat(times)).join(''))
    if (row.error === null) court.same(parseFile(data).body.length + parseFile(data).fields.length > 0, true, row.about)
    else court.refuses(() => parseFile(data), row.about, row.error)
  }
}

/** The key of the memory that holds the value of a free key, or null (FORMAT.md 1.7). */
function valueKey(name: string): string | null {
  const data = utf8(name)
  if (data.length < 1 || data.length > 256 || fromUtf8(data) !== name) return null
  const stem = name.toLowerCase().replace(/[^a-z0-9]+/g, '_').replace(/^_+|_+$/g, '').slice(0, 20).replace(/_+$/, '')
  return `kv-${stem || 'x'}-${hex(sha256(data)).slice(0, 40)}`
}

export const valueKeys: Judge = (all, court) => {
  for (const { parts, key } of all.keys) {
    const name = parts.map(([text, times]: [string, number]) => text.repeat(times)).join('')
    court.same(valueKey(name), key, name.slice(0, 60))
    if (key !== null) court.same(isKey(key), true, key)
  }
}

export const merge: Judge = (all, court) => {
  for (const row of all.lines) court.same(mergeLines([...row.base], [...row.a], [...row.b])?.join('') ?? null, row.merged, 'lines')
  for (const row of all.fields) court.same(mergeFields(row.base, row.a, row.b), row.merged, row.why)
  for (const row of all.memories) {
    const merged = merge3(utf8(row.base), utf8(row.a), utf8(row.b))
    court.same(merged && fromUtf8(merged), row.merged, row.why)
  }
  const [base, a, b] = [all.not_utf8_hex.base, all.not_utf8_hex.a, all.not_utf8_hex.b]
  if (base !== undefined) court.same(merge3(fromHex(base), fromHex(a), fromHex(b)), null, 'not UTF-8')
  for (const { n, m, clean } of all.limit.cases) {
    const lines = Array.from({ length: n }, (_, i) => `x${i}`)
    court.same(mergeLines(lines, [...Array(m - n).fill('a'), ...lines], [...lines, 'b']) !== null, clean, `${n} x ${m}`)
  }
}

export const keysJudge: Judge = (all, court) => {
  for (const key of all.valid) court.same(isKey(key), true, key)
  for (const key of all.invalid) court.same(isKey(key), false, key)
  for (const row of all.foreign) court.same(keyOfForeignName(row.name), { key: row.key, origin: row.origin_name }, row.name)
  for (const row of all.conflict_names) {
    const split = splitConflictName(row.name)
    court.same([split?.key ?? null, split?.hash ?? null], [row.key, row.hash], row.name)
    if (split !== null) court.same(conflictName(split.key, split.hash), row.name, row.name)
  }
  for (const token of all.scopes) court.same(isScope(token), true, token)
  for (const token of all.no_scopes) court.same(isScope(token), false, token)
}

export const index: Judge = (all, court) => {
  for (const row of all.render) court.same(renderIndex(row.items, row.attention), row.text, row.about)
  for (const row of all.bad) court.refuses(() => renderIndex(row.items, row.attention), 'no name of ours')
  for (const row of all.cap.cases) {
    court.same(capIndex(all.cap.text, row.relevance, row.max_lines, row.max_bytes), row.capped, `${row.max_lines} ${row.max_bytes}`)
  }
}

export const timeline: Judge = (all, court) => {
  for (const row of all.lines) {
    court.same([lineOf(row.event), foreignId(row.event)], [row.line, row.foreign_id], row.line)
    court.same(isEvent(row.event), true, row.line)
  }
  for (const row of all.bad_events) court.same(isEvent(row.event) && row.event.id !== undefined, false, row.about)
  for (const row of all.parse) {
    const events = parseLines(fromHex(row.line_hex), '2026-04-15')
    court.same(events.map(lineOf), row.event_line === null ? [] : [row.event_line], row.line_hex)
  }
  for (const row of all.instants) court.same([normalTs(row.ts), normalTs(row.ts)?.slice(0, 10)], [row.normal, row.day], row.ts)
  for (const ts of all.bad_instants) court.same(instant(ts), null, ts)
  for (const row of all.own_ids) {
    const split = splitOwnId(row.id)
    court.same([split?.device ?? null, split?.n ?? null], [row.device, row.n], row.id)
  }
  // A browser has one time zone, Node takes the one of each row; one check, so that both count the same.
  const env = (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone
  const days: [string, string][] = []
  for (const row of all.local_days) {
    if (env !== undefined) env['TZ'] = row.zone
    else if (row.zone !== here) continue
    days.push([dayHere(row.ts), row.day])
  }
  court.same(days.map(([day]) => day), days.map(([, day]) => day), 'days of local time')
  if (env !== undefined) env['TZ'] = here
  for (const row of all.unions) court.same(union(row.sources).map(lineOf), row.lines, 'union')
}

export const programEvents: Judge = (all, court) => {
  for (const row of all.rows) court.same([readMove(row.event), readVault(row.event)], [row.move, row.vault], JSON.stringify(row.event))
  for (const row of all.newest) {
    const moves = row.events.map(readMove).filter((one: Move | null) => one !== null)
    court.same(newestMove(moves)?.id ?? null, row.id, 'newest')
  }
}

export const clock: Judge = (all, court) => {
  for (const row of all.next) {
    if (row.result === null) court.refuses(() => nextClock(row.last, row.now_ms), row.last)
    else court.same(nextClock(row.last, row.now_ms), row.result, `${row.last} ${row.now_ms}`)
  }
  for (const row of all.observed) court.same(clockAfterSeeing(row.last, row.seen, row.now_ms), row.result, `${row.last} ${row.seen}`)
  for (const row of all.put_right) court.same(correctedClock(row.last, row.now_ms), row.result, `${row.last} ${row.now_ms}`)
  for (const text of all.refused) court.refuses(() => clockMs(text), text)
}

export const blob: Judge = (all, court) => {
  for (const row of all.read) {
    const read = readBlob(row.blob)
    const got = [Object.fromEntries(read.files), read.more, read.others, read.index, read.problems.length]
    court.same(got, [row.files, row.more, row.others ?? [], row.index, row.problems], row.about)
    court.same([...read.unread].sort(), row.unread ?? [], row.about)
    court.same(writeBlob(read.files, read.events, read.index, read.others), row.written, row.about)
  }
  for (const row of all.bad) court.refuses(() => readBlob(row.blob), row.about, 'format')
}
