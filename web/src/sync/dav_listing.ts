/** The answer to a PROPFIND request, parsed within bounds. An answer with a document type is refused, so no entity is declared or expanded. */

import { SaxesParser } from 'saxes'

/** One resource of a list. `status`: 200, or another one that the server reports for it. */
export type DavEntry = { readonly path: readonly string[]; readonly status: number; readonly isFolder: boolean; readonly size: number | null; readonly modified: number | null }

const ENTRIES_MAX = 100_000
const DEPTH_MAX = 64
/** Characters of an address, a date and the like. */
const TEXT_MAX = 4096
const DAV = 'DAV:'
const RESPONSE = 'multistatus/response'
const PROPSTAT = `${RESPONSE}/propstat`
const PROP = `${PROPSTAT}/prop`
const TEXTS = new Set([`${RESPONSE}/href`, `${RESPONSE}/status`, `${PROPSTAT}/status`, `${PROP}/getcontentlength`, `${PROP}/getlastmodified`])
const COLLECTION = `${PROP}/resourcetype/collection`

/** Return the entries of an answer. Throws an Error that says what is wrong with it. */
export function parseListing(xml: string): DavEntry[] {
  const entries: DavEntry[] = []
  const path: string[] = []
  let text: string | null = null
  let response = new Map<string, string>()
  let props = new Map<string, string>()
  const parser = new SaxesParser({ xmlns: true })
  parser.on('error', error => {
    throw new Error(`its XML cannot be read: ${error.message}`)
  })
  parser.on('doctype', () => {
    throw new Error('its XML has a document type')
  })
  parser.on('opentag', tag => {
    path.push(tag.uri === DAV ? tag.local : `{${tag.uri}}`)
    if (path.length > DEPTH_MAX) throw new Error('its XML is nested too deep')
    const at = path.join('/')
    if (path.length === 1 && at !== 'multistatus') throw new Error('it is not a list')
    if (at === RESPONSE) {
      if (entries.length >= ENTRIES_MAX) throw new Error(`it has more than ${ENTRIES_MAX} entries`)
      response = new Map()
    } else if (at === PROPSTAT) props = new Map()
    else if (at === COLLECTION) props.set('collection', 'yes')
    else if (TEXTS.has(at)) text = ''
  })
  const characters = (piece: string): void => {
    if (text === null) return
    text += piece
    if (text.length > TEXT_MAX) throw new Error('it has a field that is too long')
  }
  parser.on('text', characters)
  parser.on('cdata', characters)
  parser.on('closetag', () => {
    const at = path.join('/')
    const name = path.pop() as string
    if (TEXTS.has(at) && text !== null) {
      ;(at.startsWith(`${PROPSTAT}/`) ? props : response).set(name, text.trim())
      text = null
    } else if (at === PROPSTAT) {
      if (statusOf(props.get('status') ?? '') === 200) for (const [field, value] of props) response.set(`prop ${field}`, value)
    } else if (at === RESPONSE) entries.push(entryOf(response))
  })
  parser.write(xml).close()
  return entries
}

function entryOf(response: ReadonlyMap<string, string>): DavEntry {
  const href = response.get('href') ?? ''
  if (href === '') throw new Error('an entry has no address')
  const size = response.get('prop getcontentlength') ?? ''
  const modified = Date.parse(response.get('prop getlastmodified') ?? '')
  return {
    path: pathOf(href),
    status: response.has('status') ? statusOf(response.get('status') as string) : 200,
    isFolder: response.has('prop collection'),
    size: /^[0-9]{1,15}$/.test(size) ? Number(size) : null,
    modified: Number.isNaN(modified) ? null : modified
  }
}

/** The decoded names of the path of an address; a name that is not UTF-8 stays as it is. */
export function pathOf(address: string): string[] {
  const [path = ''] = address.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '').split(/[?#]/)
  return path
    .split('/')
    .filter(name => name !== '')
    .map(name => {
      try {
        return decodeURIComponent(name)
      } catch {
        return name
      }
    })
}

/** The number of a status line such as `HTTP/1.1 200 OK`; 0 without one. */
const statusOf = (line: string): number => Number(/^\S+\s+([0-9]{3})(?:\s|$)/.exec(line)?.[1] ?? 0)
