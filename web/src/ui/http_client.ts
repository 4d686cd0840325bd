/** A vault behind the HTTP API of this server (`ipfsmem ui`). The token is only in memory: not in storage, not in a cookie. */

import { HERE } from '../device/days.ts'
import {
  BEST, type Change, type Choice, type Clash, type Context, type Finding, type Happening, type Heard, type Line, type Member, type MemoryClient,
  type Opened, type Place, Refusal, type Right, type Scope, type Shown, type State, type Version, type Written
} from './client.ts'
import { happeningOf } from './happening.ts'
import { HttpLife } from './http_life.ts'
import type { BundlesExportBody, Conflicts, ContextBlock, ContextBody, MemoryRecord, Recalled, RecallBody } from '../operations.d.ts'
import type { Life } from './life.ts'

type Json = { [name: string]: any }

const SILENT: Change = { what: '', scope: '', key: '', doing: '', done: 0, total: 0, locked: false }
/** Milliseconds until an ended stream of changes is requested again. */
const AGAIN = 1000

export class HttpClient implements MemoryClient {
  readonly alone = false
  readonly life: Life
  readonly #token: string
  #vaultName = ''

  constructor(token: string) {
    this.#token = token
    const all = new HttpLife((...args) => this.#ask(...args))
    this.life = { sessions: all, graph: all, dreams: all, dreaming: all, usage: all }
  }

  /** Return the client for a one-time code. Raises Refusal for an invalid code. */
  static async exchange(code: string): Promise<HttpClient> {
    const answer = await fetched('/v1/session', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ code }) })
    return new HttpClient(((await answer.json()) as Json)['token'])
  }

  async #ask(method: string, path: string, query: Record<string, string | number | undefined> = {}, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const asks = new URLSearchParams()
    for (const [name, value] of Object.entries({ vault: this.#vaultName, ...query })) if (value !== undefined && value !== '') asks.set(name, String(value))
    const sent: RequestInit = { method, headers: { Authorization: `Bearer ${this.#token}`, ...headers, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) } }
    if (body !== undefined) sent.body = JSON.stringify(body)
    const said = asks.toString()
    try {
      return await fetched(`/v1/${path}${said ? `?${said}` : ''}`, sent)
    } catch (error) {
      // A server without time zone files knows only UTC.
      if (!query['tz'] || !(error instanceof Refusal) || error.status !== 400) throw error
      return this.#ask(method, path, { ...query, tz: undefined }, body, headers)
    }
  }

  async #get(path: string, query: Record<string, string | number | undefined> = {}): Promise<Json> {
    return (await this.#ask('GET', path, query)).json() as Promise<Json>
  }

  async #post(path: string, query: Record<string, string | undefined>, body: unknown, headers: Record<string, string> = {}): Promise<Json> {
    return (await this.#ask('POST', path, query, body, headers)).json() as Promise<Json>
  }

  async open(): Promise<Opened> {
    const known = await this.#get('vaults', { vault: undefined })
    const all = known['vaults'] as { vault_name: string; locked: boolean }[]
    const one = all.find(each => each.vault_name === this.#vaultName) ?? all[0]
    this.#vaultName = one?.vault_name ?? ''
    return { vaultName: this.#vaultName, vaultNames: all.map(each => each.vault_name), right: known['right'] as Right, locked: one?.locked ?? true, whole: known['scopes'] === null }
  }

  choose(vaultName: string): void {
    this.#vaultName = vaultName
  }

  async list(scope: string, how: { type?: string; match?: string; cursor?: string; limit?: number }): Promise<{ lines: readonly Line[]; next: string | null; total: number }> {
    const page = await this.#get('memories', { scope, type: how.type, match: how.match, cursor: how.cursor, limit: how.limit })
    return { lines: page['memories'].map(lineOf), next: page['next'], total: page['total'] }
  }

  async recall(query: string, scope: string): Promise<readonly Line[]> {
    const found = await this.#post('recall', { scope }, { query, limit: BEST } satisfies RecallBody) as Recalled
    return found.hits.map(hit => ({ ...lineOf({ ...hit, tags: tagsOf(hit.fields['tags']), conflicts: 0, merged: false, fetched: true }), score: hit.score, own: hit.own }))
  }

  async read(key: string, scope: string): Promise<Shown> {
    return (await this.#get(`memories/${key}`, { scope })) as unknown as Shown
  }

  async write(key: string, scope: string, written: Written, seen: string | null): Promise<Shown> {
    const answer = await this.#ask('PUT', `memories/${key}`, { scope }, written, seen === null ? { 'If-None-Match': '*' } : { 'If-Match': `"${seen}"` })
    return (await answer.json()) as Shown
  }

  async forget(key: string, scope: string, seen: string): Promise<void> {
    await this.#ask('DELETE', `memories/${key}`, { scope }, undefined, { 'If-Match': `"${seen}"` })
  }

  async history(key: string, scope: string): Promise<readonly Version[]> {
    const found = await this.#get(`memories/${key}/history`, { scope })
    return found['versions'].map((one: Json) => ({ sha256: one['sha256'], at: one['written'], by: one['label'] || one['device'], now: one['now'], own: one['own'] }))
  }

  async past(key: string, scope: string, sha256: string): Promise<string> {
    return (await this.#get(`memories/${key}/history/${sha256}`, { scope }))['text']
  }

  async restore(key: string, scope: string, sha256: string, seen: string): Promise<void> {
    await this.#post('restore', { scope }, { key, sha256, seen })
  }

  async events(scope: string, how: { day?: string; cursor?: string }): Promise<{ events: readonly Happening[]; next: string | null }> {
    const page = await this.#get('events', { scope, since: how.day, until: how.day, tz: HERE, cursor: how.cursor })
    return { events: page['events'].map(happeningOf), next: page['next'] }
  }

  async days(scope: string, since: string): Promise<readonly { day: string; events: number }[]> {
    return (await this.#get('events/days', { scope, since, tz: HERE }))['days']
  }

  async note(scope: string, type: string, data: Readonly<Record<string, string>>): Promise<void> {
    await this.#post('events', { scope }, { type, data })
  }

  async conflicts(): Promise<readonly Clash[]> {
    const found = await this.#get('conflicts', { everywhere: 'true' }) as Conflicts
    const by = (one: MemoryRecord | null) => one === null ? '' : found.labels[one.device] ?? one.device
    return found.conflicts.map(({ key, scope, seen, forgotten, shown, copies }) => ({
      key, scope, seen, forgotten, by: by(shown), text: shown?.text ?? null,
      copies: copies.map(({ file, reading }) => ({ file, by: by(reading), text: reading?.text ?? null }))
    }))
  }

  async resolve(clash: Clash, choice: Choice): Promise<void> {
    await this.#post(`memories/${clash.key}/resolve`, { scope: clash.scope }, choice, { 'If-Match': `"${clash.seen}"` })
  }

  async context(scope: string, how: { query?: string; maxTokens?: number; layout?: string }): Promise<Context> {
    const body = { preview: true, query: how.query || null, max_tokens: how.maxTokens || null, layout: (how.layout || 'index') as 'index' } satisfies ContextBody
    const made = await this.#post('context', { scope }, body) as ContextBlock
    return { text: made.text, tokens: made.tokens, shown: made.shown, skipped: made.skipped, listed: made.listed, leftOut: made.left_out, secrets: made.secrets ?? [] }
  }

  async scopes(): Promise<readonly Scope[]> {
    return (await this.#get('scopes'))['scopes'].map((one: Json) => ({ name: one['scope'], title: one['card']?.title ?? one['scope'], memories: one['memories'] }))
  }

  async status(): Promise<State> {
    const one = await this.#get('status')
    return {
      vaultName: one['vault_name'], mode: one['mode'], memories: one['memories'], events: one['events'], conflicts: one['conflicts'], notFetched: one['not_fetched'],
      unpublished: one['unpublished'], published: one['mode'] === 'ipfs' || one['mode'] === 'encrypted-ipfs', unlockedUntil: one['unlocked_until'],
      notices: [...one['notices'], ...one['files'].flatMap((folder: Json) => folder['remarks'] ?? [])]
    }
  }

  async members(): Promise<readonly Member[]> {
    return (await this.#get('members'))['members'].map((one: Json) => ({ id: one['id'], label: one['label'], role: one['role'], kind: one['kind'], thisDevice: one['this_device'], root: one['root'], heard: one['heard'] }))
  }

  async providers(): Promise<readonly Place[]> {
    return (await this.#get('providers'))['providers'].map((one: Json) => ({ name: one['name'], can: one['can'], limits: one['limits'], at: one['at'], problem: one['problem'] }))
  }

  async check(): Promise<readonly Finding[]> {
    return (await this.#get('check'))['findings']
  }

  async sync(): Promise<string> {
    let done: Json
    try {
      done = await this.#post('sync', {}, undefined)
    } catch (error) {
      // The request is in progress; its end arrives as an event.
      if (error instanceof Refusal && error.kind === 'ConcurrencyError') return 'A sync runs already'
      throw error
    }
    const report = done['report']
    const came = report['entries_changed']
    const words = [came ? `${came} changed here` : '', report['published'] ? 'published' : '', report['conflicts'] ? `${report['conflicts']} in conflict` : ''].filter(Boolean)
    const open = done['exit_code'] === 0 ? '' : report['notices'].map((one: Json) => one['text'] ?? one[1] ?? '').join(' ')
    return [words.join(', ') || 'Everything is up to date', open].filter(Boolean).join('. ')
  }

  async export(format: 'zip' | 'car' | 'blob', scope: string, partial: boolean): Promise<Blob> {
    return (await this.#ask('POST', 'export', { scope }, { format, partial } satisfies BundlesExportBody)).blob()
  }

  subscribe(heard: Heard): () => void {
    const ending = new AbortController()
    void this.#listen(heard, ending.signal)
    return () => ending.abort()
  }

  async #listen(heard: Heard, signal: AbortSignal): Promise<void> {
    let cursor = ''
    while (!signal.aborted) {
      try {
        const query = this.#vaultName ? `?vault=${this.#vaultName}` : ''
        const answer = await fetch(`/v1/changes${query}`, { signal, cache: 'no-store', headers: { Authorization: `Bearer ${this.#token}`, ...(cursor ? { 'Last-Event-ID': cursor } : {}) } })
        if (answer.status === 401) {
          // Another server is running by now: opening the vault again reports that.
          heard.change({ ...SILENT, what: 'locked', locked: true })
          return
        }
        if (answer.body === null || !answer.ok) throw new Error('no stream')
        heard.connected(true)
        for await (const event of eventsOf(answer.body)) {
          cursor = event.id || cursor
          if (event.event !== 'ready') heard.change({ ...SILENT, ...(JSON.parse(event.data) as object) } as Change)
        }
      } catch {
        // It is requested again below; the next answer has the error.
      }
      if (signal.aborted) return
      heard.connected(false)
      await new Promise(done => setTimeout(done, AGAIN))
    }
  }
}

async function fetched(path: string, sent: RequestInit): Promise<Response> {
  let answer: Response
  try {
    answer = await fetch(path, { cache: 'no-store', credentials: 'omit', redirect: 'error', ...sent })
  } catch {
    throw new Refusal('Offline', 'ipfsmem does not answer', 'Is `ipfsmem ui` still running in its terminal?', 0)
  }
  if (answer.ok) return answer
  const said = (await answer.json().catch(() => ({}))) as Partial<{ kind: string; detail: string; hint: string }>
  throw new Refusal(said.kind ?? 'Unexpected', said.detail ?? `it answered ${answer.status}`, said.hint ?? '', answer.status)
}

async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<{ id: string; event: string; data: string }> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader()
  let waiting = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return
    waiting += value
    for (let end = waiting.indexOf('\n\n'); end >= 0; end = waiting.indexOf('\n\n')) {
      const found = { id: '', event: '', data: '' }
      for (const line of waiting.slice(0, end).split('\n')) {
        const [, name, text] = /^(id|event|data): (.*)$/.exec(line) ?? []
        if (name !== undefined) found[name as 'id'] = text ?? ''
      }
      waiting = waiting.slice(end + 2)
      if (found.event) yield found
    }
  }
}

function lineOf(one: Json): Line {
  const fields = one['fields'] as Record<string, string>
  return {
    key: one['key'], scope: one['scope'], name: fields['name'] ?? '', description: fields['description'] ?? '', type: fields['type'] ?? '', updated: fields['updated'] ?? fields['created'] ?? '',
    tags: one['tags'], conflicts: one['conflicts'], merged: one['merged'], here: one['fetched'], score: null, own: true
  }
}

function tagsOf(text: string | undefined): string[] {
  return (text ?? '').replace(/^\[|\]$/g, '').split(',').map(one => one.trim()).filter(Boolean)
}
