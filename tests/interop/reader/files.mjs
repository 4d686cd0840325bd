// Memory files and their three-way merge (FORMAT.md 1.2 and 5).

import YAML from 'yaml'
import { byCodePoints, canonical, fromUtf8, need, unlessRefused } from './bytes.mjs'
import { MOST_FILE } from './sealed.mjs'

const KNOWN = 'name description type created updated source decay category tags important confidence expires agent_name origin_name'.split(' ')
const MOST_HEADER = 4096
const MOST_PAIRS = 4000000
const SPECIAL = '-?:,[]{}#&*!|>\'"%@`'
// eslint-disable-next-line no-control-regex
const CONTROL = /[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]/
const trim = text => text.replace(/^[ \t\r]+|[ \t\r]+$/g, '')

// --- reading ---

/** Fields, in their order, and body of the bytes of a file. */
export function parseFile(data) {
  const found = fromUtf8(data)
  const raw = found.startsWith('\ufeff') ? found.slice(1) : found
  const body = all => all.replace(/\n+$/, '')
  // Not with `^` and `$`: to them U+2028 ends a line.
  const text = /^---[ \t]*\r\n/.test(raw) ? raw.replaceAll('\r\n', '\n') : raw
  const open = /^---[ \t]*\n/.exec(text)
  const end = open && /\n---[ \t]*(?:\n|(?![^]))/.exec(text.slice(open[0].length - 1))
  const fields = end && readHeader(text.slice(open[0].length, open[0].length - 1 + end.index + 1))
  if (!fields) return { fields: [], body: body(raw) }
  const after = text.slice(open[0].length - 1 + end.index + end[0].length)
  return { fields, body: body(after.startsWith('\n') ? after.slice(1) : after) }
}

/** The fields of a header, or null when it is none. */
function readHeader(header) {
  const lines = header === '' ? [] : header.replace(/\n$/, '').split('\n')
  const long = Buffer.byteLength(header) > MOST_HEADER
  const flat = flatFields(lines)
  if (flat) {
    need(!long, 'limit', 'a header of more than 4 KiB')
    if (flat.comments.length && !flat.fields.length) return null
    return settle(flat.fields, flat.comments)
  }
  if (long) return null
  const fields = yamlFields(header)
  if (fields === null) return null
  const comments = lines.filter(line => line.startsWith('#')).map(line => trim(line.slice(1)))
  return settle(fields, comments)
}

/** Of doubled fields the first that is not empty; comment lines behind what a field of that name says. */
function settle(all, comments) {
  const out = new Map()
  for (const [name, value] of all) {
    if (out.get(name)) continue
    out.delete(name)
    out.set(name, value)
  }
  const said = comments.filter(line => line !== '')
  if (said.length) {
    const own = out.get('comment')
    if (!own) out.delete('comment')
    out.set('comment', [...(own ? [own] : []), ...said].join('\n'))
  }
  return [...out].filter(([, value]) => value !== '')
}

function flatFields(lines) {
  const fields = []
  const comments = []
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]
    if (trim(line) === '') continue
    if (line.startsWith('#')) {
      comments.push(trim(line.slice(1)))
      continue
    }
    const pair = flatLine(line)
    if (!pair) return null
    const next = lines.slice(i + 1).find(one => trim(one) !== '') ?? ''
    if (pair[0] === 'metadata' && pair[1] === '' && /^[ \t]/.test(next)) {
      const indent = /^[ \t]+/.exec(next)[0]
      for (; i + 1 < lines.length && (trim(lines[i + 1]) === '' || lines[i + 1].startsWith(indent)); i++) {
        const inner = lines[i + 1]
        if (trim(inner) === '') continue
        const text = inner.slice(indent.length)
        if (text.startsWith('#')) comments.push(trim(text.slice(1)))
        else {
          const lifted = flatLine(text)
          if (!lifted) return null
          fields.push(lifted)
        }
      }
      continue
    }
    fields.push(pair)
  }
  return { fields, comments }
}

function flatLine(line) {
  if (/^[ \t]/.test(line)) return null
  let name, value
  if (line.startsWith('"')) {
    const quoted = /^("(?:[^"\\]|\\.)*")[ \t]*:/.exec(line)
    if (quoted) {
      name = jsonText(quoted[1]) ?? quoted[1]
      value = trim(line.slice(quoted[0].length))
    }
  }
  if (name === undefined) {
    if ((line[0] !== '"' && SPECIAL.includes(line[0])) || !line.includes(':')) return null
    const at = line.indexOf(':')
    name = trim(line.slice(0, at))
    value = trim(line.slice(at + 1))
  }
  return [name, scalar(value)]
}

function jsonText(text) {
  try {
    const value = JSON.parse(text)
    return typeof value === 'string' && value.isWellFormed() ? value : null
  } catch {
    return null
  }
}

function scalar(value) {
  if (/^"[^]*"$/.test(value) && value.length > 1) return jsonText(value) ?? value
  if (/^'(?:[^']|'')*'$/.test(value)) return value.slice(1, -1).replaceAll("''", "'")
  return value
}

function splitTags(inner) {
  const items = []
  const item = /[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')[ \t]*(?:,|$)|([^,]*)(?:,|$)/y
  for (let found; item.lastIndex <= inner.length && (found = item.exec(inner)); ) {
    items.push(found[1] === undefined ? trim(found[2]) : trim(scalar(found[1])))
    if (item.lastIndex === inner.length && !found[0].endsWith(',')) break
  }
  return items.filter(one => one !== '')
}

const writeTags = items => (items.length ? `[${items.map(one => (bare(one) && !/[,[\]{}"']/.test(one) ? one : quoted(one))).join(', ')}]` : '')
/** The items of `tags`, with or without brackets. */
export const readTags = text => splitTags(/^\[[^]*\]$/.test(text) ? text.slice(1, -1) : text)

function yamlFields(header) {
  let document
  header = header.replaceAll('\r\n', '\n')
  if (CONTROL.test(header.replace(/[\t\n]/g, ' '))) return null
  try {
    document = YAML.parseDocument(header, { schema: 'failsafe', version: '1.2', uniqueKeys: false, logLevel: 'silent', strict: true })
    if (document.errors.length || document.warnings.length || /^%/m.test(header)) return null
  } catch {
    return null
  }
  const bad = node => node.anchor || node.tag || YAML.isAlias(node)
  const plain = (node, depth) => {
    if (depth > 4 || (node && bad(node))) throw new Error('refused')
    if (node === null) return ''
    if (YAML.isScalar(node)) return node.value === null ? '' : String(node.value).replace(/\n+$/, '')
    if (YAML.isSeq(node)) return node.items.map(one => plain(one, depth + 1))
    const out = {}
    for (const { key, value } of node.items) {
      const name = plain(key, depth + 1)
      if (typeof name !== 'string' || name === '') throw new Error('refused')
      if (out[name] && Object.keys(out[name]).length) continue
      delete out[name]
      out[name] = plain(value, depth + 1)
    }
    return out
  }
  let root
  try {
    if (!YAML.isMap(document.contents)) return null
    root = plain(document.contents, 0)
  } catch {
    return null
  }
  const fields = []
  const add = (name, value) => {
    if (name === 'tags' && Array.isArray(value)) fields.push([name, writeTags(value.map(one => trim(typeof one === 'string' ? one : canonical(one))).filter(Boolean))])
    else fields.push([name, typeof value === 'string' ? value : canonical(value)])
  }
  for (const [name, value] of Object.entries(root)) {
    if (name === 'metadata' && typeof value === 'object' && !Array.isArray(value)) Object.entries(value).forEach(([inner, one]) => add(inner, one))
    else add(name, value)
  }
  return fields
}

// --- writing ---

const bare = value =>
  value !== '' && !SPECIAL.includes(value[0]) && !/^ | $/.test(value) && !/: | #|:$/.test(value) && !CONTROL.test(value)

const quoted = value =>
  JSON.stringify(value).replace(
    /[\x7f-\x9f\u2028\u2029\ufeff]/g,
    letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
  )

/** The normal form. */
export function renderFile({ fields, body }) {
  const said = fields.map(([name, value]) => [name, name === 'tags' ? writeTags(readTags(value)) : value]).filter(one => one[1] !== '')
  body = body.replace(/\n+$/, '')
  const known = KNOWN.flatMap(name => said.filter(one => one[0] === name))
  const all = [...known, ...said.filter(one => !KNOWN.includes(one[0]))]
  const end = body === '' ? '' : `${body}\n`
  if (all.length === 0) return body.startsWith('---') || body.startsWith('\ufeff') ? `---\n---\n\n${end}` : end
  const line = ([name, value]) => {
    const left = bare(name) && !name.includes(':') ? name : quoted(name)
    return `${left}: ${name === 'tags' ? value : bare(value) ? value : quoted(value)}\n`
  }
  return `---\n${all.map(line).join('')}---\n${body === '' ? '' : `\n${end}`}`
}

// --- three-way merge ---

/** Pairs [base line, side line] of the longest common subsequence, walked from the start. */
function matches(base, side) {
  const width = side.length + 1
  const table = new Uint32Array((base.length + 1) * width)
  for (let i = base.length - 1; i >= 0; i--) {
    for (let j = side.length - 1; j >= 0; j--) {
      table[i * width + j] =
        base[i] === side[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1])
    }
  }
  const out = new Map()
  for (let i = 0, j = 0; i < base.length && j < side.length; ) {
    if (base[i] === side[j]) out.set(i++, j++)
    else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i++
    else j++
  }
  return out
}

const equal = (a, b) => a.length === b.length && a.every((one, i) => one === b[i])

/** Merged lines, or null where it is not clean. */
export function mergeLines(base, a, b) {
  if (equal(a, b) || equal(b, base)) return a
  if (equal(a, base)) return b
  if (base.length * Math.max(a.length, b.length) > MOST_PAIRS) return null
  const [left, right] = [matches(base, a), matches(base, b)]
  const out = []
  let [i, j, k] = [0, 0, 0]
  const region = (toBase, toA, toB) => {
    const [old, ours, theirs] = [base.slice(i, toBase), a.slice(j, toA), b.slice(k, toB)]
    if (equal(ours, theirs) || equal(theirs, old)) out.push(...ours)
    else if (equal(ours, old)) out.push(...theirs)
    else return false
    return true
  }
  for (let n = 0; n < base.length; n++) {
    if (!left.has(n) || !right.has(n)) continue
    if (!region(n, left.get(n), right.get(n))) return null
    out.push(base[n])
    ;[i, j, k] = [n + 1, left.get(n) + 1, right.get(n) + 1]
  }
  return region(base.length, a.length, b.length) ? out : null
}

/** Merged fields, or null. */
export function mergeFields(base, a, b) {
  const [old, ours, theirs] = [new Map(base), new Map(a), new Map(b)]
  const names = [...KNOWN, ...ours.keys(), ...theirs.keys()]
  const out = []
  for (const name of new Set(names)) {
    const [was, mine, other] = [old.get(name), ours.get(name), theirs.get(name)]
    let value
    if (mine === other || other === was) value = mine
    else if (mine === was) value = other
    else if (mine === undefined || other === undefined) return null
    else if (name === 'updated' || name === 'created') value = [mine, other].sort(byCodePoints)[name === 'updated' ? 1 : 0]
    else if (name === 'tags') value = writeTags([...new Set([...readTags(mine), ...readTags(other)])].sort(byCodePoints))
    else return null
    if (value !== undefined) out.push([name, value])
  }
  return out
}

const linesOf = body => (body === '' ? [] : body.split('\n'))

/** The bytes of the merge of three files, or null where it is not clean. */
export function merge3(base, a, b) {
  const read = unlessRefused(() => [base, a, b].map(parseFile))
  if (read === null) return null
  const [old, ours, theirs] = read
  const fields = mergeFields(old.fields, ours.fields, theirs.fields)
  const body = mergeLines(linesOf(old.body), linesOf(ours.body), linesOf(theirs.body))
  if (fields === null || body === null) return null
  const out = Buffer.from(renderFile({ fields, body: body.join('\n') }))
  return out.length > MOST_FILE || unlessRefused(() => parseFile(out)) === null ? null : out
}
