/** The portable blob `memory/0.1`, read (FORMAT.md 1.5). A bad record is left out and reported, the rest is read. */

import { BLOB_VERSION, type Text } from './blob.ts'
import { canonical, fromUtf8, isObject, need, unlessRefused, utf8 } from './bytes.ts'
import { editFile } from './header_edit.ts'
import { hasNameTwice, spansOf } from './json_text.ts'
import { fileName, INDEX_FILE, keyOfForeignName, splitConflictName } from './keys.ts'
import { MOST_LINE } from './limits.ts'
import { parseFile } from './memory_file.ts'
import { hasRepeatedName, isEvent, parseLine, type TimelineEvent, union } from './timeline.ts'

export type Blob = {
  readonly files: ReadonlyMap<string, string>
  /** Further texts for a key, conflict copies among them. */
  readonly more: readonly Text[]
  /** Texts that were not the exporter's own. */
  readonly others: readonly Text[]
  readonly events: readonly TimelineEvent[]
  /** As it was written; never an input. */
  readonly index: string
  /** What was left out, and why; the keys of unreadable files. */
  readonly problems: readonly string[]
  readonly unread: ReadonlySet<string>
}

type Found = { readonly key: string; readonly text: string; readonly isForeign: boolean; readonly isCopy: boolean }

function textsIn(value: unknown, what: string, problems: string[], wrong: string[], unread: Set<string>): Found[] {
  if (value !== undefined && value !== null && !isObject(value)) {
    wrong.push(`the ${what} of an export are not an object of names and texts`)
    return []
  }
  const out: Found[] = []
  for (const [name, text] of Object.entries(value ?? {})) {
    if (name === INDEX_FILE) continue
    const copy = splitConflictName(name)
    try {
      out.push({ ...fileOf(copy === null ? name : fileName(copy.key), text), isCopy: copy !== null })
    } catch (error) {
      problems.push(`${name.slice(0, 120)} was left out: ${error instanceof Error ? error.message : error}`)
      unread.add(copy?.key ?? name.replace(/\.md$/, ''))
    }
  }
  return out
}

export function fileOf(name: string, text: unknown): Omit<Found, 'isCopy'> {
  need(typeof text === 'string' && text.isWellFormed(), 'format', 'it is not Unicode text')
  const { key, origin } = keyOfForeignName(name)
  if (origin !== null) return { key, text: fromUtf8(editFile(utf8(text), new Map([['origin_name', origin]]))), isForeign: true }
  parseFile(utf8(text))
  return { key, text, isForeign: false }
}

/**
 * Read an export, or a browser's stored value, which has no version. `lenient`: a field of a wrong type is only a problem if others are
 * readable.
 */
export function readBlob(source: string, { lenient = false } = {}): Blob {
  const json = source.replace(/^\ufeff/, '')
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    need(false, 'format', 'the export is not valid JSON')
  }
  need(isObject(value), 'format', 'the export is not a JSON object')
  const members = spansOf(json)
  const inside = (name: string): string => members.find(one => one.name === name)?.text ?? ''
  for (const one of [json, inside('files'), inside('others')]) need(!hasNameTwice(one), 'format', 'a name occurs twice in the export')
  const version = value.version === undefined ? BLOB_VERSION : value.version
  const wrong = version === BLOB_VERSION ? [] : ['an export of another version']
  need(wrong.length === 0 || typeof version !== 'string', 'format', 'an export of another version')
  const index = isObject(value.index) ? value.index.text : value.index
  const problems: string[] = []
  const files = new Map<string, string>()
  const more: Text[] = []
  const unread = new Set<string>()
  const found = textsIn(value.files, 'files', problems, wrong, unread)
  for (const one of found) if (!one.isCopy && !one.isForeign) files.set(one.key, one.text)
  for (const one of [...found.filter(one => one.isForeign && !one.isCopy), ...found.filter(one => one.isCopy)]) {
    const held = files.get(one.key)
    if (held === undefined) files.set(one.key, one.text)
    else if (held !== one.text) more.push([one.key, one.text])
  }
  const others = textsIn(value.others, 'texts of others', problems, wrong, new Set()).map(({ key, text }): Text => [key, text])
  const isList = Array.isArray(value.timeline)
  if (!isList && value.timeline !== undefined && value.timeline !== null) wrong.push('the timeline of an export is not a list')
  const events = isList ? spansOf(inside('timeline')).map(one => one.text) : []
  const short = events.filter(line => utf8(line).length <= MOST_LINE)
  if (short.length < events.length) problems.push(`${events.length - short.length} of the timeline was left out, too long for a line`)
  const isAnyRead = files.size > 0 || others.length > 0 || short.length > 0
  need(wrong.length === 0 || (lenient && isAnyRead), 'format', wrong[0] ?? '')
  return { files, more, others, events: union([short.map(eventOf)]), index: typeof index === 'string' ? index : '', problems: [...problems, ...wrong], unread }
}

const NAMES = new Set(['version', 'index', 'files', 'others', 'timeline'])

/** Read an export, and refuse other JSON instead of reading it as an empty export. */
export function readExport(source: string): Blob {
  const read = readBlob(source, { lenient: true })
  const names = Object.keys(JSON.parse(source.replace(/^\ufeff/, '')) as object)
  need(names.some(name => NAMES.has(name)), 'format', 'this is not an export of a memory')
  return read
}

function eventOf(line: string): TimelineEvent {
  const event = parseLine(utf8(line))
  if (event.type !== 'raw' || isEvent(unlessRefused(() => JSON.parse(line)))) return event
  // Keep a line that is not an event in RFC 8785 form, so that white space makes no difference.
  return hasRepeatedName(line) ? event : parseLine(utf8(canonical(JSON.parse(line))))
}
