/** Sessions, graph, dreams and usage of a vault behind the HTTP API of this server. */

import { HERE } from '../device/days.ts'
import { Refusal } from './client.ts'
import type { Budget, By, Done, DreamingClient, DreamState, Dreamt, Entity, DreamsClient, Graph, GraphClient, Message, Proposal, Session, SessionFacts, SessionHit, SessionProblem, SessionsClient, Total, UsageClient } from './life.ts'

type Json = { [name: string]: any }
type Query = Record<string, string | number | undefined>
/** Send a request, with the token, to the chosen vault. */
export type Ask = (method: string, path: string, query?: Query, body?: unknown, headers?: Record<string, string>) => Promise<Response>

export class HttpLife implements SessionsClient, GraphClient, DreamsClient, DreamingClient, UsageClient {
  readonly #ask: Ask

  constructor(ask: Ask) {
    this.#ask = ask
  }

  async #get(path: string, query: Query): Promise<Json> {
    return (await this.#ask('GET', path, query)).json() as Promise<Json>
  }

  async #post(path: string, query: Query, body: unknown): Promise<Json> {
    return (await this.#ask('POST', path, query, body)).json() as Promise<Json>
  }

  async sessions(scope: string, all: boolean): Promise<{ sessions: readonly Session[]; older: number; problems: readonly SessionProblem[] }> {
    const found = await this.#get('sessions', { scope, ...(all ? { all: 'true' } : {}) })
    return { sessions: found['sessions'], older: found['older'], problems: found['problems'].map((one: Json) => ({ session: one['session'], detail: one['detail'], seen: `"${one['seen']}"` })) }
  }

  async session(scope: string, name: string): Promise<SessionFacts> {
    const answer = await this.#ask('GET', at(name), { scope })
    const one = (await answer.json()) as Json
    return {
      session: one['session'], title: one['title'], messages: one['messages'], tokens: one['tokens'], devices: one['devices'], began: one['began'], changed: one['changed'],
      covered: one['covered'], summary: one['summary'], summaryBy: one['summary_by'], summaryOwn: one['summary_own'], own: one['own'], seen: answer.headers.get('ETag') ?? ''
    }
  }

  async messages(scope: string, name: string, last: number): Promise<{ before: number; messages: readonly Message[] }> {
    const found = await this.#get(`${at(name)}/messages`, { scope, last })
    return { before: found['before'], messages: found['messages'] }
  }

  async searchSessions(scope: string, query: string): Promise<readonly SessionHit[]> {
    return (await this.#post('sessions/search', { scope, tz: HERE }, { query, limit: 50 }))['hits'] as SessionHit[]
  }

  async exportSession(scope: string, name: string, format: 'markdown' | 'json'): Promise<Blob> {
    return (await this.#ask('GET', `${at(name)}/export`, { scope, format })).blob()
  }

  async deleteSession(scope: string, name: string, seen: string): Promise<void> {
    await this.#ask('DELETE', at(name), { scope }, undefined, { 'If-Match': seen })
  }

  async approveSession(scope: string, name: string, seen: string): Promise<number> {
    const answer = await this.#ask('POST', `${at(name)}/approve`, { scope }, undefined, { 'If-Match': seen })
    return ((await answer.json()) as Json)['messages']
  }

  async entities(scope: string, words: string): Promise<readonly Entity[]> {
    const found = words ? this.#get('graph/search', { scope, query: words, limit: 1000 }) : this.#get('graph/entities', { scope, limit: 1000 })
    return (await found)['entities'] as Entity[]
  }

  async graph(scope: string, how: { entity?: string; depth?: number; limit?: number }): Promise<Graph> {
    return (await this.#get('graph', { scope, ...how })) as unknown as Graph
  }

  async dreamState(scope: string): Promise<DreamState> {
    const one = await this.#get('dream', { scope })
    return { waitsFor: one['waits_for'], underWay: one['under_way'], phase: one['phase'], worked: one['worked'], failed: one['failed'], failure: one['failure'], chosen: one['chosen'], enabled: one['enabled'] }
  }

  async dream(scope: string): Promise<Proposal> {
    return proposalOf((await this.#post('dream', { scope }, {}))['proposed'])
  }

  async proposal(scope: string): Promise<Proposal | null> {
    try {
      return proposalOf(await this.#get('dream/proposal', { scope }))
    } catch (error) {
      if (error instanceof Refusal && error.status === 404) return null
      throw error
    }
  }

  async applyDream(scope: string, id: string): Promise<Done> {
    const done = await this.#post('dream/apply', { scope }, { proposal: id })
    return { changed: done['written'].length, removed: done['removed'].length, left: done['skipped'] }
  }

  async abortDream(): Promise<void> {
    await this.#ask('POST', 'dream/abort')
  }

  async dreams(scope: string): Promise<readonly Dreamt[]> {
    return (await this.#get('dreams', { scope }))['dreams'] as Dreamt[]
  }

  async undoDream(scope: string, id: string): Promise<Done> {
    const undone = await this.#post(`dreams/${id}/undo`, { scope }, undefined)
    return { changed: undone['back'].length, removed: 0, left: [...undone['changed'], ...undone['lost']] }
  }

  async usage(scope: string, by: By, since: string): Promise<readonly Total[]> {
    const found = await this.#get('usage', { scope, by, since, tz: HERE })
    return found['totals'].map((one: Json) => ({ name: one['name'], uses: one['uses'], input: one['input_tokens'], output: one['output_tokens'], cost: one['cost'] }))
  }

  async budgets(scope: string): Promise<readonly Budget[]> {
    return (await this.#get('usage/budgets', { scope }))['budgets'] as Budget[]
  }

  async usageCsv(scope: string, since: string): Promise<Blob> {
    return (await this.#ask('GET', 'usage/csv', { scope, since, tz: HERE })).blob()
  }
}

function at(session: string): string {
  return `sessions/${encodeURIComponent(session)}`
}

function proposalOf(one: Json): Proposal {
  return { id: one['id'], at: one['at'], by: one['by'], steps: one['steps'], found: one['found'], lookedAt: one['looked_at'], left: one['left'] }
}
