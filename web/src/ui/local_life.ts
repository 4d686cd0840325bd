/** The life of a memory in this browser itself: its sessions and its graph, as the views ask for them. It only translates. */

import { Refusal } from './client.ts'
import type { Entity, Graph, GraphClient, Message, Session, SessionFacts, SessionHit, SessionProblem, SessionsClient } from './life.ts'
import { asked, type Behind } from './local_client.ts'

/** Sessions of a list that does not show all, and hits of a search. */
const SHOWN = 10
const HITS = 50

export class LocalSessions implements SessionsClient {
  constructor(readonly memory: () => Behind) {}

  async sessions(scope: string, all: boolean): Promise<{ sessions: readonly Session[]; older: number; problems: readonly SessionProblem[] }> {
    return { ...(await asked(() => this.memory().sessions({ scope, ...(all ? {} : { limit: SHOWN }) }))), problems: [] }
  }

  async session(scope: string, name: string): Promise<SessionFacts> {
    const found = await asked(() => this.memory().session(name, { scope, last: 0 }))
    if (found === null) throw gone(name)
    return found
  }

  async messages(scope: string, name: string, last: number): Promise<{ before: number; messages: readonly Message[] }> {
    const found = await asked(() => this.memory().session(name, { scope, last }))
    if (found === null) throw gone(name)
    return { before: found.before, messages: found.said }
  }

  async searchSessions(scope: string, query: string): Promise<readonly SessionHit[]> {
    return asked(() => this.memory().searchSessions(query, { scope, limit: HITS }))
  }

  async exportSession(scope: string, name: string, format: 'markdown' | 'json'): Promise<Blob> {
    return new Blob([await asked(() => this.memory().exportSession(name, { scope, format }))], { type: format === 'json' ? 'application/json' : 'text/markdown' })
  }

  async deleteSession(scope: string, name: string, seen: string): Promise<void> {
    if (!(await asked(() => this.memory().deleteSession(name, { scope, seen })))) throw gone(name)
  }
}

export class LocalGraph implements GraphClient {
  constructor(readonly memory: () => Behind) {}

  async entities(scope: string, words: string): Promise<readonly Entity[]> {
    return asked(() => this.memory().entities({ scope, words }))
  }

  async graph(scope: string, how: { entity?: string; depth?: number; limit?: number }): Promise<Graph> {
    return asked(() => this.memory().graph({ scope, ...how }))
  }
}

const gone = (session: string): Refusal => new Refusal('not found', `there is no session ${session.slice(0, 60)}`, '', 404)
