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
/** Unquoted values that some YAML loader (1.1 or 1.2) reads as a boolean, null, a number, a date, a time or a merge. */
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

/** The position of a file's header: its first line, its closing mark, and the text after the line of that mark. */
export type Marks = { readonly lines: number; readonly closing: number; readonly rest: number; readonly isCrlf: boolean }

/** Find the two lines `---` of a text without its BOM, or null. `readHeader` decides whether the text between is a header. */
export function findMarks(text: string): Marks | null {
  // Not with `^` and `$`: for them U+2028 ends a line.
  const open = /^---[ \t]*(\r?)\n/.exec(text)
  if (open === null) return null
  const lines = open[0].length
  const close = /\n---[ \t\r]*(?:\n|(?![^]))/g
  close.lastIndex = lines - 1
  const found = close.exec(text)
  return found === null ? null : { lines, closing: found.index + 1, rest: close.lastIndex, isCrlf: open[1] !== '' }
}

/** Parse the fields, in order, and the body of a file. */
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

/** The value of a field, '' if absent. */
export const fieldOf = (file: MemoryFile, name: string): string => file.fields.find(one => one[0] === name)?.[1] ?? ''

/** Parse the fields of a header, its lines without the last line end; null if it is not a header. */
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

/** Of repeated fields the first that is not empty; comment lines after the value of a field with that name. */
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

/** The text of a complete JSON string without lone surrogates, else null. */
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

/**
 * Forms that YAML libraries read differently: a tab in an indentation, a `?` that may be a key, escapes of surrogates, a block scalar that
 * begins in a line of its own, and a document marker before everything: `---` after spaces, or `...`.
 */
const DISPUTED = new RegExp(
  '(?:(?<![^])|\\n)[ -]*\\t|(?:(?<![^])|[\\n[{,:-])[ \\t]*\\?(?=[ \\t\\n]|(?![^]))|\\\\u[dD][89a-fA-F]|\\\\U|:[,\\]}]' +
    '|:[ \\t]*(?:[ \\t]#[^\\n]*)?\\n(?:[ \\t]*(?:#[^\\n]*)?\\n)*[ \\t]*[|>]' +
    '|(?<![^])(?:[ \\t]*(?:#[^\\n]*)?\\n)*(?: +---|\\.\\.\\.)(?=[ \\t\\n]|(?![^]))'
)

type Yaml = string | Yaml[] | Map<string, Yaml>

/** Parse a header in YAML as text only; null if it is not accepted. */
function yamlFields(text: string): Field[] | null {
  // A line that only closes flow collections: people write it at the margin, where the library does not accept it.
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

/** Tell whether every library accepts a name, with its quotation marks and up to its colon: in one line, of at most 1,024 characters. */
function isName(source: string, marks: number, start: number, end: number): boolean {
  const between = /(?:[ \t\n]|#[^\n]*)*/y
  between.lastIndex = end + marks
  between.exec(source)
  const whole = source.slice(start - marks, between.lastIndex)
  return source[between.lastIndex] !== ':' || (!whole.includes('\n') && [...whole].length <= 1024)
}

/** Tell whether a colon directly before `?`, `[` or `{` follows, after optional white space. */
function isBeforeCollection(source: string, end: number): boolean {
  const colon = /[ \t\n]*:[?[{]/y
  colon.lastIndex = end
  return colon.test(source)
}

/** Parse a header from the events of the parser, so that a refused construct has no effect. */
function yamlRoot(source: string): Map<string, Yaml> | null {
  try {
    // None of the tabs is in an indentation (DISPUTED); the parser mistakes one before a text or collection in a flow collection for that.
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
      // The library accepts anything after a closing quotation mark.
      if (event.type === EVENT_ID.SCALAR && /["']/.test(source[event.valueStart - 1] ?? '') && source[event.valueStart - 1] === source[event.valueEnd] && !/[ \t\n,\]}:]/.test(source[event.valueEnd + 1] ?? ' ')) throw new NotTaken()
      // In a flow collection: a text that begins with a colon or a question mark, and a colon directly before `?`, `[` or `{`. Other
      // libraries read these as the beginning or end of names.
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
    return null // any error of the parser: then the header is body
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

/** Tell whether every reader reads an unquoted value as this text. */
export const isBare = (value: string): boolean => isPlain(value) && !hasOtherType(value)

/** Some loaders accept underscores anywhere in numbers. */
const hasOtherType = (value: string): boolean => OTHER_TYPE.test(value.replaceAll('_', ''))

/** Tell whether the value of a field is written unquoted: dates, `important` and `confidence` may have their types. */
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

/** A field name at the beginning of a header line; a YAML document ends at a line that begins with `... `. */
export const writtenName = (name: string): string => (isBare(name) && !name.includes(':') && !name.startsWith('... ') ? name : quoted(name))

/** The header lines of fields in normal form; empty text without fields. */
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
