/** Memory files, read leniently and written in their one normal form (FORMAT.md 1.2). */

import { COLLECTION_STYLE, EVENT_ID, getScalarValue, parseEvents, SCALAR_STYLE } from 'js-yaml'
import { type Bytes, byteLength, canonical, fromUtf8, need } from './bytes.ts'
import { MOST_FILE } from './limits.ts'
import { instant } from './timeline.ts'

export type Field = readonly [name: string, value: string]
export type MemoryFile = { readonly fields: readonly Field[]; readonly body: string }

export const KNOWN_FIELDS = [
  'name',
  'description',
  'type',
  'created',
  'updated',
  'source',
  'decay',
  'category',
  'tags',
  'important',
  'confidence',
  'expires',
  'agent_name',
  'origin_name'
] as const
export const MOST_HEADER = 4096
const MOST_DEPTH = 4
const SPECIAL = '-?:,[]{}#&*!|>\'"%@`'
const CONTROL = /[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/
/** What some YAML loader (1.1 or 1.2) takes for a boolean, nothing, a number, a date, a time or a merge when it has no quotes. */
const OTHER_TYPE = new RegExp(
  '^(?:y|n|yes|no|on|off|true|false|null|~|<<|=' +
    '|[-+]?(?:0[box][0-9a-f]+|[0-9]+(?::[0-9]{1,2})*(?:\\.[0-9]*)?(?:e[-+]?[0-9]+)?|\\.[0-9]+(?:e[-+]?[0-9]+)?|\\.inf|\\.nan)' +
    '|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[ \\tt][^]*)?)(?![^])',
  'i'
)
const DATES = ['created', 'updated', 'expires']
const trim = (text: string): string => text.replace(/^[ \t\r]+|[ \t\r]+$/g, '')
export const withoutLastLines = (text: string): string => text.replace(/\n+$/, '')

// --- reading ---

/** Where the header of a file lies: its first line, its closing mark, and what follows the line of that mark. */
export type Marks = { readonly lines: number; readonly closing: number; readonly rest: number; readonly isCrlf: boolean }

/** The two lines `---` of a text without its BOM, or null. They prove no header: `readHeader` judges what lies between. */
export function findMarks(text: string): Marks | null {
  // Not with `^` and `$`: to them U+2028 ends a line.
  const open = /^---[ \t]*(\r?)\n/.exec(text)
  if (open === null) return null
  const lines = open[0].length
  const close = /\n---[ \t\r]*(?:\n|(?![^]))/g
  close.lastIndex = lines - 1
  const found = close.exec(text)
  return found === null ? null : { lines, closing: found.index + 1, rest: close.lastIndex, isCrlf: open[1] !== '' }
}

/** Fields, in their order, and body of the bytes of a file. */
export function parseFile(data: Bytes): MemoryFile {
  need(data.length <= MOST_FILE, 'limit', 'a file of more than 960 KiB')
  const found = fromUtf8(data)
  const text = found.startsWith('\ufeff') ? found.slice(1) : found
  const marks = findMarks(text)
  const asLf = (part: string): string => (marks?.isCrlf ? part.replaceAll('\r\n', '\n') : part)
  const fields = marks && readHeader(asLf(text.slice(marks.lines, marks.closing)).replace(/\r?\n$/, ''))
  if (marks === null || fields === null) return { fields: [], body: withoutLastLines(text) }
  return { fields, body: withoutLastLines(asLf(text.slice(marks.rest)).replace(/^\n/, '')) }
}

/** The value of a field, '' where it has none. */
export const fieldOf = (file: MemoryFile, name: string): string => file.fields.find(one => one[0] === name)?.[1] ?? ''

/** The fields of a header, its lines without the end of the last; null when it is not a header. */
export function readHeader(header: string): Field[] | null {
  const lines = header.split('\n')
  const isLong = byteLength(header) > MOST_HEADER
  const flat = flatFields(lines)
  if (flat !== null) {
    need(!isLong, 'limit', 'a header of more than 4 KiB')
    return flat.comments.length > 0 && !flat.isNamed ? null : settled(flat.fields, flat.comments)
  }
  if (isLong) return null
  const fields = yamlFields(header)
  if (fields === null) return null
  return settled(fields, lines.filter(line => line.startsWith('#')).map(line => trim(line.slice(1))))
}

/** Of doubled fields the first that is not empty; comment lines behind what a field of that name says. */
function settled(all: readonly Field[], comments: readonly string[]): Field[] {
  const out = new Map<string, string>()
  for (const [name, value] of all) {
    if (out.get(name)) continue
    out.delete(name)
    out.set(name, value)
  }
  const said = comments.filter(line => line !== '')
  if (said.length > 0) {
    const own = out.get('comment')
    if (!own) out.delete('comment')
    out.set('comment', [...(own ? [own] : []), ...said].join('\n'))
  }
  return [...out].filter(([, value]) => value !== '')
}

export function flatFields(lines: readonly string[]): { fields: Field[]; comments: string[]; isNamed: boolean } | null {
  const fields: Field[] = []
  const comments: string[] = []
  let isNamed = false
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] as string
    if (trim(line) === '') continue
    if (line.startsWith('#')) {
      comments.push(trim(line.slice(1)))
      continue
    }
    const pair = flatLine(line)
    if (pair === null) return null
    isNamed = true
    const next = lines.slice(i + 1).find(one => trim(one) !== '' && !one.startsWith('#')) ?? ''
    const indent = /^[ \t]+/.exec(next)?.[0]
    if (pair[0] !== 'metadata' || !/:[ \t\r]*$/.test(line) || pair[1] !== '' || indent === undefined) {
      fields.push(pair)
      continue
    }
    for (; i + 1 < lines.length; i++) {
      const inner = lines[i + 1] as string
      if (trim(inner) === '') continue
      if (inner.startsWith('#')) {
        comments.push(trim(inner.slice(1)))
        continue
      }
      if (!inner.startsWith(indent)) break
      const text = inner.slice(indent.length)
      if (text.startsWith('#')) {
        comments.push(trim(text.slice(1)))
        continue
      }
      const lifted = flatLine(text)
      if (lifted === null) return null
      fields.push(lifted)
    }
  }
  return { fields, comments, isNamed }
}

function flatLine(line: string): Field | null {
  if (/^[ \t]/.test(line)) return null
  const quotedName = /^("(?:[^"\\]|\\[^])*")[ \t]*:/.exec(line)
  if (quotedName !== null) {
    const name = quotedName[1] as string
    return [jsonText(name) ?? name, scalar(trim(line.slice(quotedName[0].length)))]
  }
  const at = line.indexOf(':')
  if ((!line.startsWith('"') && SPECIAL.includes(line[0] as string)) || at < 0) return null
  return [trim(line.slice(0, at)), scalar(trim(line.slice(at + 1)))]
}

/** The text of a whole JSON string without lone surrogates, else null. */
function jsonText(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' && value.isWellFormed() ? value : null
  } catch {
    return null
  }
}

export function scalar(value: string): string {
  if (value.length > 1 && /^"[^]*"$/.test(value)) return jsonText(value) ?? value
  if (/^'(?:[^']|'')*'$/.test(value)) return value.slice(1, -1).replaceAll("''", "'")
  return value
}

// --- headers that are not flat ---

/** Forms that YAML libraries read differently: a tab in an indentation, a `?` that may be a key of its own, escapes of surrogates, a block of text that begins in a line of its own, and a document marker before all else: `---` behind spaces, or `...`. */
const DISPUTED = new RegExp(
  '(?:(?<![^])|\\n)[ -]*\\t|(?:(?<![^])|[\\n[{,:-])[ \\t]*\\?(?=[ \\t\\n]|(?![^]))|\\\\u[dD][89a-fA-F]|\\\\U|:[,\\]}]' +
    '|:[ \\t]*(?:[ \\t]#[^\\n]*)?\\n(?:[ \\t]*(?:#[^\\n]*)?\\n)*[ \\t]*[|>]' +
    '|(?<![^])(?:[ \\t]*(?:#[^\\n]*)?\\n)*(?: +---|\\.\\.\\.)(?=[ \\t\\n]|(?![^]))'
)

type Yaml = string | Yaml[] | Map<string, Yaml>

/** The fields of a header in YAML that yields text only, or null where it is none that is taken. */
function yamlFields(text: string): Field[] | null {
  // A line that only closes flow collections: people write it at the margin, and the library does not take it there.
  const header = text.replaceAll('\r\n', '\n').replace(/(?:(?<![^])|(?<=\n))(?=[\]}][\]} \t,]*(?:\n|(?![^])))/g, ' ')
  if (DISPUTED.test(header) || CONTROL.test(header.replace(/[\t\n]/g, ' ')) || /^%/m.test(header)) return null
  const root = yamlRoot(header)
  if (root === null) return null
  const fields: Field[] = []
  const add = (name: string, value: Yaml): void => {
    if (name === 'tags' && Array.isArray(value)) {
      const items = value.map(one => trim(typeof one === 'string' ? one : canonical(plain(one))))
      fields.push([name, writeTags(items.filter(Boolean))])
    } else fields.push([name, typeof value === 'string' ? value : isEmpty(value) ? '' : canonical(plain(value))])
  }
  for (const [name, value] of root) {
    if (name === 'metadata' && value instanceof Map) for (const [inner, one] of value) add(inner, one)
    else add(name, value)
  }
  return fields
}

const plain = (value: Yaml): unknown =>
  value instanceof Map
    ? Object.fromEntries([...value].map(([name, one]) => [name, plain(one)]))
    : Array.isArray(value)
      ? value.map(plain)
      : value

class NotTaken extends Error {}

/** Whether a name, with its quotation marks and up to its colon, is one that every library takes: in one line, of at most 1,024 characters. */
function isName(source: string, marks: number, start: number, end: number): boolean {
  const between = /(?:[ \t\n]|#[^\n]*)*/y
  between.lastIndex = end + marks
  between.exec(source)
  const whole = source.slice(start - marks, between.lastIndex)
  return source[between.lastIndex] !== ':' || (!whole.includes('\n') && [...whole].length <= 1024)
}

/** Whether a colon directly before `?`, `[` or `{` comes next, perhaps after white space. */
function isBeforeCollection(source: string, end: number): boolean {
  const colon = /[ \t\n]*:[?[{]/y
  colon.lastIndex = end
  return colon.test(source)
}

/** What a header says, read from the events of the parser, so that nothing is made of what it refuses. */
function yamlRoot(source: string): Map<string, Yaml> | null {
  try {
    // None of the tabs is in an indentation (DISPUTED); the parser takes one before a text or collection in a flow collection for that.
    const events = parseEvents(source.replaceAll('\t', ' '), {})
    let at = 0
    const next = () => {
      const event = events[at++]
      if (event === undefined) throw new NotTaken()
      return event
    }
    const value = (depth: number, isInFlow = false): Yaml => {
      const event = next()
      const most = event.type === EVENT_ID.SCALAR ? MOST_DEPTH : MOST_DEPTH - 1 // an empty collection is as deep as one with texts
      if (depth > most || event.type === EVENT_ID.ALIAS || event.type === EVENT_ID.DOCUMENT || event.type === EVENT_ID.POP) {
        throw new NotTaken()
      }
      if (event.anchorStart >= 0 || event.tagStart >= 0) throw new NotTaken()
      // The library goes on after whatever stands behind a closing quotation mark.
      if (event.type === EVENT_ID.SCALAR && /["']/.test(source[event.valueStart - 1] ?? '') && source[event.valueStart - 1] === source[event.valueEnd] && !/[ \t\n,\]}:]/.test(source[event.valueEnd + 1] ?? ' ')) throw new NotTaken()
      // In a flow collection: a text that begins with a colon or a question mark, and a colon directly before `?`, `[` or `{`. Other libraries take these for ends and beginnings of names.
      if (isInFlow && event.type === EVENT_ID.SCALAR && event.style === SCALAR_STYLE.PLAIN && (/[?:]/.test(source[event.valueStart] ?? '') || /:[?[{]/.test(source.slice(event.valueStart, event.valueEnd + 2)) || isBeforeCollection(source, event.valueEnd))) throw new NotTaken()
      if (event.type === EVENT_ID.SCALAR) return withoutLastLines(getScalarValue(source, event))
      const isFlow = event.style === COLLECTION_STYLE.FLOW
      if (event.type === EVENT_ID.SEQUENCE) {
        const out: Yaml[] = []
        while (events[at]?.type !== EVENT_ID.POP) out.push(value(depth + 1, isFlow))
        at++
        return out
      }
      const out = new Map<string, Yaml>()
      while (events[at]?.type !== EVENT_ID.POP) {
        const found = events[at]
        const name = value(depth + 1, isFlow)
        if (typeof name !== 'string' || name === '' || found?.type !== EVENT_ID.SCALAR || !isName(source, found.style === SCALAR_STYLE.PLAIN ? 0 : 1, found.valueStart, found.valueEnd)) throw new NotTaken()
        const one = value(depth + 1, isFlow)
        const held = out.get(name)
        if (held !== undefined && !isEmpty(held)) continue
        out.delete(name)
        out.set(name, one)
      }
      at++
      return out
    }
    const document = next()
    if (document.type !== EVENT_ID.DOCUMENT || document.directives.length > 0) return null
    const root = value(0)
    return root instanceof Map && next().type === EVENT_ID.POP && at === events.length ? root : null
  } catch {
    return null // the parser's errors, of whatever class: the header is body then
  }
}

const isEmpty = (value: Yaml): boolean =>
  typeof value === 'string' ? value === '' : Array.isArray(value) ? value.length === 0 : value.size === 0

// --- tags ---

function splitTags(inner: string): string[] {
  const items: string[] = []
  const item = /[ \t]*("(?:[^"\\]|\\[^])*"|'(?:[^']|'')*')[ \t]*(?:,|$)|([^,]*)(?:,|$)/y
  while (item.lastIndex <= inner.length) {
    const found = item.exec(inner)
    if (found === null) break
    items.push(trim(found[1] === undefined ? (found[2] as string) : scalar(found[1])))
    if (item.lastIndex === inner.length && !found[0].endsWith(',')) break
  }
  return items.filter(one => one !== '')
}

/** The items of `tags`, with or without brackets. */
export function readTags(text: string): string[] {
  const inner = trim(text)
  return splitTags(/^\[[^]*\]$/.test(inner) ? inner.slice(1, -1) : inner)
}

export const writeTags = (items: readonly string[]): string =>
  items.length > 0 ? `[${items.map(one => (isBare(one) && !/[,[\]{}"'?]/.test(one) ? one : quoted(one))).join(', ')}]` : ''

// --- writing ---

/** Whether every reader takes a value for this text when it stands without quotation marks. */
export const isBare = (value: string): boolean => isPlain(value) && !hasOtherType(value)

/** Underscores stand anywhere in numbers for some loaders. */
const hasOtherType = (value: string): boolean => OTHER_TYPE.test(value.replaceAll('_', ''))

/** Whether the value of a field stands without quotation marks: dates, `important` and `confidence` may be what they are. */
export function isBareValue(name: string, value: string): boolean {
  if (!isPlain(value)) return false
  if (DATES.includes(name) && instant(value) !== null) return true
  if (name === 'important' && (value === 'true' || value === 'false')) return true
  if (name === 'confidence' && /^(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?(?![^])/.test(value)) return true
  return !hasOtherType(value)
}

const isPlain = (value: string): boolean =>
  value !== '' && !SPECIAL.includes(value[0] as string) && !/^ | $/.test(value) && !/: | #|:$/.test(value) && !CONTROL.test(value)

export const quoted = (value: string): string =>
  JSON.stringify(value).replace(/[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g, letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** A field name as a header line begins with it; a YAML document ends at a line that begins with `... `. */
export const writtenName = (name: string): string => (isBare(name) && !name.includes(':') && !name.startsWith('... ') ? name : quoted(name))

/** The header lines of fields, in the normal form; empty text without any. */
export function renderLines(fields: readonly Field[]): string {
  const said = fields.map(([name, value]): Field => [name, name === 'tags' ? writeTags(readTags(value)) : value]).filter(one => one[1] !== '')
  const known = KNOWN_FIELDS.flatMap(name => said.filter(one => one[0] === name))
  const all = [...known, ...said.filter(one => !(KNOWN_FIELDS as readonly string[]).includes(one[0]))]
  const line = ([name, value]: Field): string => {
    return `${writtenName(name)}: ${name === 'tags' || isBareValue(name, value) ? value : quoted(value)}\n`
  }
  return all.map(line).join('')
}

/** The normal form of a file. */
export function renderFile({ fields, body }: MemoryFile): string {
  const lines = renderLines(fields)
  const text = withoutLastLines(body)
  const end = text === '' ? '' : `${text}\n`
  if (lines === '') return text.startsWith('---') || text.startsWith('\ufeff') ? `---\n---\n\n${end}` : end
  return `---\n${lines}---\n${text === '' ? '' : `\n${end}`}`
}
