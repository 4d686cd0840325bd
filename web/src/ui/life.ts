/**
 * The page's interface to sessions, the graph, dreams and usage, with the names of every other interface. Times are milliseconds since 1970
 * UTC, costs are millionths of a US dollar.
 */

export type Session = { readonly session: string; readonly title: string; readonly preview: string; readonly messages: number; readonly changed: number; readonly own: boolean }
/**
 * `covered`: number of messages in the summary. `own`, `summaryOwn`: false if messages, or some in the summary, are pending (imported and
 * not approved).
 */
export type SessionFacts = { readonly session: string; readonly title: string; readonly messages: number; readonly tokens: number; readonly devices: number; readonly began: number | null; readonly changed: number | null; readonly covered: number; readonly summary: string; readonly summaryBy: string; readonly summaryOwn: boolean; readonly own: boolean; readonly seen: string }
export type Message = { readonly role: string; readonly at: number; readonly text: string; readonly tools: readonly string[]; readonly own: boolean }
/** A damaged session, of which nothing can be read; it can be forgotten by its `seen`. */
export type SessionProblem = { readonly session: string; readonly detail: string; readonly seen: string }
export type SessionHit = { readonly session: string; readonly at: number; readonly role: string; readonly text: string; readonly own: boolean }

export type Entity = { readonly key: string; readonly name: string; readonly kind: string; readonly observations: readonly string[] }
export type Relation = { readonly begin: string; readonly type: string; readonly end: string }
/** `more`: there are more than the limit. */
export type Graph = { readonly nodes: readonly Entity[]; readonly edges: readonly Relation[]; readonly more: boolean }

export type DreamState = { readonly waitsFor: string; readonly underWay: boolean; readonly phase: string; readonly worked: number; readonly failed: number; readonly failure: string; readonly chosen: boolean; readonly enabled: boolean }
/** `text` null: the memory will be deleted. */
export type DreamChange = { readonly key: string; readonly text: string | null }
export type DreamStep = { readonly why: string; readonly changes: readonly DreamChange[] }
export type DreamFound = { readonly kind: string; readonly key: string; readonly other: string; readonly detail: string }
export type Proposal = { readonly id: string; readonly at: number; readonly by: string; readonly steps: readonly DreamStep[]; readonly found: readonly DreamFound[]; readonly lookedAt: number; readonly left: number }
/**
 * An applied dream. If known: the device that it was `on`, the changed `keys`, whether it was undone, and how many memories an undo would
 * restore now.
 */
export type Dreamt = { readonly id: string; readonly at: number; readonly by: string; readonly written: number; readonly removed: number; readonly on?: string; readonly keys?: readonly string[]; readonly undone?: boolean; readonly back?: number }
/** The applied changes, and the memories left unchanged because they changed meanwhile. */
export type Done = { readonly changed: number; readonly removed: number; readonly left: readonly string[] }

export type By = 'agent' | 'provider' | 'model' | 'day'
export type Total = { readonly name: string; readonly uses: number; readonly input: number; readonly output: number; readonly cost: number }
/** `limit` 0: no limit. */
export type Budget = { readonly period: string; readonly spent: number; readonly limit: number }

export interface SessionsClient {
  /** The newest, as many as the settings allow, or all; `older`: number of those left out; `problems`: damaged ones. */
  sessions(scope: string, all: boolean): Promise<{ sessions: readonly Session[]; older: number; problems: readonly SessionProblem[] }>
  session(scope: string, name: string): Promise<SessionFacts>
  /** The last messages, and the number before them. */
  messages(scope: string, name: string, last: number): Promise<{ before: number; messages: readonly Message[] }>
  searchSessions(scope: string, query: string): Promise<readonly SessionHit[]>
  exportSession(scope: string, name: string, format: 'markdown' | 'json'): Promise<Blob>
  deleteSession(scope: string, name: string, seen: string): Promise<void>
  /** Approve its imported messages as the person's own; returns their number. */
  approveSession(scope: string, name: string, seen: string): Promise<number>
}

export interface GraphClient {
  entities(scope: string, words: string): Promise<readonly Entity[]>
  /** The whole graph, or entities at most `depth` relations away from one. */
  graph(scope: string, how: { entity?: string; depth?: number; limit?: number }): Promise<Graph>
}

export interface DreamsClient {
  dreams(scope: string): Promise<readonly Dreamt[]>
  undoDream(scope: string, id: string): Promise<Done>
}

/** Running dreams. */
export interface DreamingClient {
  dreamState(scope: string): Promise<DreamState>
  /** Scan the memories without changing any. */
  dream(scope: string): Promise<Proposal>
  /** The open proposal; null if none. */
  proposal(scope: string): Promise<Proposal | null>
  applyDream(scope: string, id: string): Promise<Done>
  abortDream(): Promise<void>
}

export interface UsageClient {
  usage(scope: string, by: By, since: string): Promise<readonly Total[]>
  /** Empty if this client knows no limits. */
  budgets(scope: string): Promise<readonly Budget[]>
  usageCsv(scope: string, since: string): Promise<Blob>
}

/** The parts that a client has. `dreaming`: if this device dreams; a proposal is only on its device. */
export type Life = { readonly sessions: SessionsClient; readonly graph: GraphClient; readonly dreams: DreamsClient; readonly dreaming?: DreamingClient; readonly usage: UsageClient }
