/** Sessions, graph and dreams of a vault in this browser, in the form that the views need. It only translates. */

import { Refusal } from './client.ts'
import type { Done, DreamsClient, Dreamt, Entity, Graph, GraphClient, Message, Session, SessionFacts, SessionHit, SessionProblem, SessionsClient } from './life.ts'
import { type Behind, fromVault } from './local_vault.ts'

/** Sessions in a short list, and results of a search. */
const SHOWN = 10
const HITS = 50

export class LocalSessions implements SessionsClient {
  constructor(readonly memory: () => Behind) {}

  async sessions(scope: string, all: boolean): Promise<{ sessions: readonly Session[]; older: number; problems: readonly SessionProblem[] }> {
    return { ...(await fromVault(() => this.memory().sessions({ scope, ...(all ? {} : { limit: SHOWN }) }))), problems: [] }
  }

  async session(scope: string, name: string): Promise<SessionFacts> {
    const found = await fromVault(() => this.memory().session(name, { scope, last: 0 }))
    if (found === null) throw gone(name)
    return found
  }

  async messages(scope: string, name: string, last: number): Promise<{ before: number; messages: readonly Message[] }> {
    const found = await fromVault(() => this.memory().session(name, { scope, last }))
    if (found === null) throw gone(name)
    return { before: found.before, messages: found.said }
  }

  async searchSessions(scope: string, query: string): Promise<readonly SessionHit[]> {
    return fromVault(() => this.memory().searchSessions(query, { scope, limit: HITS }))
  }

  async exportSession(scope: string, name: string, format: 'markdown' | 'json'): Promise<Blob> {
    return new Blob([await fromVault(() => this.memory().exportSession(name, { scope, format }))], { type: format === 'json' ? 'application/json' : 'text/markdown' })
  }

  async deleteSession(scope: string, name: string, seen: string): Promise<void> {
    if (!(await fromVault(() => this.memory().deleteSession(name, { scope, seen })))) throw gone(name)
  }

  async approveSession(scope: string, name: string, seen: string): Promise<number> {
    return fromVault(() => this.memory().approveSession(name, { scope, seen }))
  }
}

export class LocalGraph implements GraphClient {
  constructor(readonly memory: () => Behind) {}

  async entities(scope: string, words: string): Promise<readonly Entity[]> {
    return fromVault(() => this.memory().entities({ scope, words }))
  }

  async graph(scope: string, how: { entity?: string; depth?: number; limit?: number }): Promise<Graph> {
    return fromVault(() => this.memory().graph({ scope, ...how }))
  }
}

export class LocalDreams implements DreamsClient {
  constructor(readonly memory: () => Behind) {}

  async dreams(scope: string): Promise<readonly Dreamt[]> {
    const found = await fromVault(() => this.memory().dreams({ scope }))
    return found.map(({ id, at, by, label, written, removed, undone, back }) => ({ id, at, by, written: written.length, removed: removed.length, on: label, keys: [...written, ...removed], undone, back }))
  }

  async undoDream(scope: string, id: string): Promise<Done> {
    const { back, changed, lost } = await fromVault(() => this.memory().undoDream(id, { scope }))
    return { changed: back.length, removed: 0, left: [...changed, ...lost] }
  }
}

const gone = (session: string): Refusal => new Refusal('not found', `there is no session ${session.slice(0, 60)}`, '', 404)
