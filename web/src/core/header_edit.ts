/**
 * Change fields or the body of a memory file, and no other byte of it (FORMAT.md 1.2). A header in normal form stays in it; in any other
 * one only the lines of the changed fields are written, or the change is refused.
 */

import { type Bytes, byteLength, fromUtf8, need, refuse, unlessRefused, utf8 } from './bytes.ts'
import { frontMatter, isUnclosed } from './front_matter.ts'
import {
  type Field,
  findMarks,
  flatFields,
  isBareValue,
  type Marks,
  type MemoryFile,
  MOST_HEADER,
  parseFile,
  quoted,
  readTags,
  renderFile,
  renderLines,
  scalar,
  withoutLastLines,
  writeTags,
  writtenName
} from './memory_file.ts'

type Changes = ReadonlyMap<string, string>
type Fields = Map<string, string>

const NOTHING: Changes = new Map()
const COMMENT = /[ \t]+#/
const isSame = (a: Changes, b: Changes): boolean => a.size === b.size && [...a].every(([name, value]) => b.get(name) === value)

/**
 * Return the file with some fields set, or removed if the new value is empty, and optionally another body. `stamps`: fields set too, if the
 * header can be changed. A body without another program's header keeps that of the old body.
 */
export function editFile(data: Bytes, changes: Changes, body: string | null = null, stamps: Changes = NOTHING): Bytes {
  if (stamps.size === 0 || (changes.size === 0 && isForeign(data, body))) return edited(data, changes, body)
  return unlessRefused(() => edited(data, new Map([...stamps, ...changes]), body)) ?? edited(data, changes, body)
}

/** Refuse a new body that would replace a header without a closing line. A body that begins in the same way is allowed. */
export function refuseOverUnclosed(data: Bytes, body: string): void {
  const isKept = !isUnclosed(fromUtf8(data)) || isUnclosed(body)
  need(isKept, 'format', 'the header of this memory has no closing line: write the whole file')
}

/** Return the file `made`, written as a change of another one. */
export function renderOver(data: Bytes, made: MemoryFile): Bytes {
  const old = parseFile(data)
  const [before, after] = [new Map(old.fields), new Map(made.fields)]
  const names = new Set([...before.keys(), ...after.keys()])
  const changes = new Map([...names].filter(name => before.get(name) !== after.get(name)).map(name => [name, after.get(name) ?? '']))
  return edited(data, changes, made.body === old.body ? null : made.body)
}

/** Tell whether a file has no header, or one in normal form. */
export function hasNormalHeader(data: Bytes): boolean {
  const { fields, body } = parseFile(data)
  const raw = fromUtf8(data)
  const bom = raw.startsWith('\ufeff') ? '\ufeff' : ''
  const text = raw.slice(bom.length)
  const marks = findMarks(text)
  if (marks === null || (fields.length === 0 && withoutLastLines(text) === body)) return true
  return isNormal(bom, text, marks, fields)
}

function isNormal(bom: string, text: string, marks: Marks, fields: readonly Field[]): boolean {
  const lines = text.slice(marks.lines, marks.closing)
  const closing = text.slice(marks.closing, marks.rest)
  const isMarked = bom === '' && text.startsWith('---\n') && (closing === '---\n' || closing === '---')
  return isMarked && byteLength(lines) <= MOST_HEADER + 1 && lines === renderLines(fields)
}

/** Tell whether the first header for programs is another program's: one of ours above it would hide it from them. */
function isForeign(data: Bytes, body: string | null): boolean {
  const old = parseFile(data)
  const text = body ?? old.body
  if (frontMatter(text) === '' || !old.fields.every(([name]) => name === 'origin_name')) return false
  const inside = unlessRefused(() => parseFile(utf8(text)))
  return inside !== null && inside.fields.length === 0 && inside.body === withoutLastLines(text)
}

function edited(data: Bytes, changes: Changes, newBody: string | null): Bytes {
  const read = parseFile(data)
  const old: Fields = new Map(read.fields)
  const front = frontMatter(read.body)
  const raw = fromUtf8(data)
  const bom = raw.startsWith('\ufeff') ? '\ufeff' : ''
  const text = raw.slice(bom.length)
  const found = findMarks(text)
  const marks = read.fields.length > 0 || withoutLastLines(text) !== read.body ? found : null
  let body = newBody === null ? null : withoutLastLines(marks?.isCrlf ? newBody.replaceAll('\r\n', '\n') : newBody)
  if (body !== null && front !== '' && frontMatter(body) === '') body = joined(front, body)
  const fields = wantedFields(old, changes)
  const wanted = { fields: [...fields], body: body ?? read.body }
  if (isSame(fields, old) && wanted.body === read.body) return data
  if (front !== '' && !isSame(fields, old)) {
    // Only the original name of a text may be written above another program's header.
    const isOther = (name: string): boolean => name !== 'origin_name'
    need([...old.keys()].some(isOther) || ![...changes.keys()].some(isOther), 'format', 'the header of this memory has a format whose fields cannot be changed one by one')
  }
  const made = utf8(marks === null ? withoutHeader(bom, wanted) : withHeader(bom, text, marks, old, wanted, body))
  const again = parseFile(made)
  const isRight = isSame(new Map(again.fields), fields) && again.body === wanted.body
  need(isRight, 'format', 'this field cannot be changed without losing another part of the memory\'s header')
  return made
}

function wantedFields(old: Fields, changes: Changes): Fields {
  const made: Fields = new Map([...old, ...changes])
  const tags = changes.get('tags')
  if (tags) made.set('tags', writeTags(readTags(tags)))
  return new Map([...made].filter(([, value]) => value !== ''))
}

/** Put a new body below another program's header. */
function joined(front: string, body: string): string {
  if (body === '') return withoutLastLines(front)
  return /[\n\r]$/.test(front) ? front + body : `${front}\n${body}`
}

function withoutHeader(bom: string, wanted: MemoryFile): string {
  if (wanted.fields.length > 0) return renderFile(wanted)
  const plain = `${bom}${wanted.body}${wanted.body === '' ? '' : '\n'}`
  const again = unlessRefused(() => parseFile(utf8(plain)))
  return again !== null && again.fields.length === 0 && again.body === wanted.body ? plain : renderFile(wanted)
}

function withHeader(bom: string, text: string, marks: Marks, old: Fields, wanted: MemoryFile, body: string | null): string {
  const fields: Fields = new Map(wanted.fields)
  const lines = text.slice(marks.lines, marks.closing)
  const closing = text.slice(marks.closing, marks.rest)
  if (isNormal(bom, text, marks, [...old])) return renderFile(wanted)
  const head = bom + text.slice(0, marks.lines) + (isSame(fields, old) ? lines : spliced(lines, marks, old, fields)) + closing
  return head + (body === null ? text.slice(marks.rest) : below(text, marks, wanted.body))
}

/** Return the text after the closing mark: the body, after a blank line if there was one, or the old body was empty. */
function below(text: string, marks: Marks, body: string): string {
  const end = marks.isCrlf ? '\r\n' : '\n'
  if (body === '') return ''
  const rest = text.slice(marks.rest)
  const isEmpty = withoutLastLines(marks.isCrlf ? rest.replaceAll('\r\n', '\n') : rest) === ''
  const isClosed = text.slice(0, marks.rest).endsWith('\n')
  const hasBlank = isEmpty || /^\r?\n/.test(body) || rest.startsWith(end)
  return (isClosed ? '' : end) + (hasBlank ? end : '') + `${body}\n`.replaceAll('\n', end)
}

/** The lines of one field, `start` up to `end`; its value begins at `value` of the first line. */
type Entry = { readonly name: string; readonly start: number; end: number; readonly value: number }

/** Return header lines with the changed fields replaced in place, new ones at the end. */
function spliced(text: string, marks: Marks, old: Fields, wanted: Fields): string {
  const isFlat = flatFields(text.replaceAll('\r\n', '\n').replace(/\n$/, '').split('\n')) !== null
  let lines = text.split('\n').slice(0, -1)
  for (const name of new Set([...old.keys(), ...wanted.keys()])) {
    const value = wanted.get(name) ?? ''
    if (value === (old.get(name) ?? '')) continue
    if (name === 'comment') lines = lines.filter(line => !/^[ \t]*#/.test(line))
    const found = entries(lines, isFlat, 0, lines.length).filter(one => one.name === name)
    if (value === '') {
      for (const one of found.reverse()) lines.splice(one.start, one.end - one.start)
      continue
    }
    const one = found.find(entry => isFilled(lines, entry)) ?? found[0]
    if (one !== undefined) lines.splice(one.start, one.end - one.start, lineWith(lines, one, value, isFlat))
    else {
      lines.push(`${indentOf(lines)}${writtenName(name)}: ${written(name, value)}${marks.isCrlf ? '\r' : ''}`)
    }
  }
  return lines.map(line => `${line}\n`).join('')
}

const isBlank = (line: string): boolean => /^[ \t\r]*$/.test(line)

/** The fields of a header in document order, including those inside a block `metadata:`. */
function entries(lines: readonly string[], isFlat: boolean, start: number, stop: number): Entry[] {
  const base = indentOf(lines.slice(start, stop))
  const out: Entry[] = []
  for (let at = start; at < stop; at++) {
    const line = lines[at] as string
    const content = line.replace(/^[ \t]+/, '')
    if (isBlank(content) || content.startsWith('#')) continue
    const last = out.at(-1)
    if (line.length - content.length !== base.length || !line.startsWith(base) || /^(?:-(?:[ \t\r]|(?![^]))|[\]}])/.test(content)) {
      if (last !== undefined) last.end = at + 1
      continue
    }
    const [name, value] = nameIn(content, isFlat)
    out.push({ name, start: at, end: at + 1, value: base.length + value })
  }
  return out.flatMap(one => (one.name === 'metadata' && one.end > one.start + 1 ? entries(lines, isFlat, one.start + 1, one.end) : [one]))
}

/** Return the name of the field that a line begins, and the position of its value; empty text if it begins none. */
function nameIn(content: string, isFlat: boolean): readonly [string, number] {
  const found = isFlat
    ? /^("(?:[^"\\]|\\[^])*")[ \t]*:/.exec(content)
    : /^("(?:[^"\\]|\\[^])*"|'(?:[^']|'')*'|[^ \t\r"'][^]*?)[ \t]*:(?=[ \t\r\n]|(?![^]))/.exec(content)
  if (found !== null) return [scalar(found[1] as string), found[0].length]
  const at = isFlat ? content.indexOf(':') : -1
  return at < 0 ? ['', 0] : [content.slice(0, at).replace(/^[ \t\r]+|[ \t\r]+$/g, ''), at + 1]
}

/** The indentation of the first line with content. */
function indentOf(lines: readonly string[]): string {
  const first = lines.find(line => !isBlank(line) && !/^[ \t]*#/.test(line)) ?? ''
  return /^[ \t]*/.exec(first)?.[0] ?? ''
}

const isFilled = (lines: readonly string[], one: Entry): boolean =>
  one.end > one.start + 1 || !['', '""', "''"].includes((lines[one.start] as string).slice(one.value).replace(/^[ \t\r]+|[ \t\r]+$/g, ''))

const written = (name: string, value: string): string => (name === 'tags' || isBareValue(name, value) ? value : quoted(value))

/** Return the line of a field with another value; a comment behind it stays. */
function lineWith(lines: readonly string[], one: Entry, value: string, isFlat: boolean): string {
  const line = lines[one.start] as string
  const rest = line.slice(one.value).replace(/\r+$/, '')
  let comment = ''
  if (!isFlat && one.end > one.start + 1) {
    const isBlock = /^[ \t]*[|>]/.test(rest)
    const texts = lines.slice(one.start, isBlock ? one.start + 1 : one.end)
    if (texts.some(text => COMMENT.test(` ${text}`))) refuse('format', `the field ${one.name} holds comments, which would be lost`)
  } else if (!isFlat) {
    const from = /^[ \t]*("(?:[^"\\]|\\[^])*"|'(?:[^']|'')*')/.exec(rest)?.[0].length ?? 0
    const at = rest.slice(from).search(COMMENT)
    comment = at < 0 ? '' : rest.slice(from + at)
  }
  return `${line.slice(0, one.value)} ${written(one.name, value)}${comment}${line.endsWith('\r') ? '\r' : ''}`
}
