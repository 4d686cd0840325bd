/** Stored sessions: list, messages of one, search, export, forget. */

import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import type { Message, Session, SessionFacts, SessionHit, SessionProblem } from './life.ts'
import { empty, many, moment, saved, View } from './view.ts'

/** Messages shown, and added per step; milliseconds without typing before a search. */
const STEP = 100
const MOST = 1000
const REST = 160
const WHO: Readonly<Record<string, string>> = { user: 'User', assistant: 'Assistant', system: 'System', tool: 'Tool' }

/** The label of imported messages. */
const PENDING = html`<span class="kind warns">imported, not approved</span>`

export class SessionsView extends View {
  static override properties = { ...View.properties, chosen: { attribute: false }, all: { state: true }, facts: { state: true }, messages: { state: true }, older: { state: true }, last: { state: true }, query: { state: true }, hits: { state: true }, sure: { state: true }, approving: { state: true }, every: { state: true }, more: { state: true }, torn: { state: true }, asking: { state: true } }
  declare chosen: string
  declare all: readonly Session[] | null
  declare facts: SessionFacts | null
  declare messages: readonly Message[]
  /** Damaged sessions, and the one about to be forgotten. */
  declare torn: readonly SessionProblem[]
  declare asking: string
  declare older: number
  declare last: number
  declare query: string
  /** Search results; null without a search. */
  declare hits: readonly SessionHit[] | null
  declare sure: boolean
  /** Whether the approval of imported messages is being confirmed. */
  declare approving: boolean
  /** Whether older ones are listed too, and the number left out. */
  declare every: boolean
  declare more: number
  #waiting = 0
  #requests = 0

  constructor() {
    super()
    Object.assign(this, { chosen: '', all: null, facts: null, messages: [], older: 0, last: STEP, query: '', hits: null, sure: false, approving: false, every: false, more: 0, torn: [], asking: '' })
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    const before = changed.get('place')
    const moved = changed.has('place') && (before?.scope !== this.place.scope || before?.revision !== this.place.revision || before?.client !== this.place.client)
    if (moved) void this.#load()
    if (changed.has('chosen')) Object.assign(this, { facts: null, messages: [], older: 0, last: STEP, sure: false, approving: false })
    if (this.chosen && (moved || changed.has('chosen'))) void this.#show()
  }

  async #load(): Promise<void> {
    const { scope } = this.place
    const query = this.query.trim()
    const number = ++this.#requests
    const found = await this.attempt(async () => [await this.life.sessions.sessions(scope, this.every), query ? await this.life.sessions.searchSessions(scope, query) : null] as const)
    if (found !== undefined && number === this.#requests) Object.assign(this, { all: found[0].sessions, more: found[0].older, torn: found[0].problems, hits: found[1] })
  }

  async #show(): Promise<void> {
    const { scope } = this.place
    const name = this.chosen
    await this.attempt(async () => {
      // In sequence: messages that arrive in between are included, and an approval or forget based on older facts is refused.
      const facts = await this.life.sessions.session(scope, name)
      const read = await this.life.sessions.messages(scope, name, this.last)
      if (name !== this.chosen) return
      // A pending confirmation did not include the new messages, so it is asked again.
      if (facts.seen !== this.facts?.seen) this.sure = this.approving = false
      Object.assign(this, { facts, messages: read.messages, older: read.before })
    })
  }

  #typed(event: Event): void {
    this.query = (event.target as HTMLInputElement).value
    clearTimeout(this.#waiting)
    this.#waiting = window.setTimeout(() => void this.#load(), REST)
  }

  async #save(format: 'markdown' | 'json'): Promise<void> {
    const blob = await this.act(() => this.life.sessions.exportSession(this.place.scope, this.chosen, format))
    if (blob !== undefined) saved(blob, `session.${format === 'markdown' ? 'md' : 'json'}`)
  }

  async #forget(): Promise<void> {
    const facts = this.facts!
    const done = await this.act(async () => { await this.life.sessions.deleteSession(this.place.scope, facts.session, facts.seen); return true })
    this.sure = false
    if (done) location.hash = '#/sessions'
    else void this.#show()
  }

  /** Ask for confirmation, with all messages shown. */
  #ask(): void {
    Object.assign(this, { approving: true, last: MOST })
    void this.#show()
  }

  async #approve(): Promise<void> {
    const facts = this.facts!
    await this.act(() => this.life.sessions.approveSession(this.place.scope, facts.session, facts.seen))
    this.approving = false
    await this.#load()
    await this.#show()
  }

  /** The note on imported messages that are not approved, and the confirmation: approved ones are given to agents. */
  #pending(facts: SessionFacts): TemplateResult | typeof nothing {
    if (facts.own) return nothing
    const mayApprove = this.place.right === 'admin' || (this.place.client.alone && this.mayWrite)
    return html`<div class="problem" role="note"><p>These messages were imported and are not approved: agents are told not to follow them, and contexts leave them out.</p>
      ${!mayApprove ? nothing : this.approving ? html`${this.#question()}<button @click=${() => (this.approving = false)}>Leave them pending</button>` : html`<button @click=${() => this.#ask()}>Approve…</button>`}</div>`
  }

  /** The confirmation, whose button appears once all messages are shown. */
  #question(): TemplateResult {
    if (!this.older) return html`<p>Read them first. Agents follow approved messages as your own words, on every device; that cannot be undone.</p><button class="danger" @click=${() => void this.#approve()} ?disabled=${this.acting}>Approve them</button>`
    return this.busy ? html`<p>Loading all messages…</p>` : html`<p>This page shows ${many(MOST, 'message')} of a session, and this one has more. Save it to read all, and approve them with <code>ipfsmem approve --session</code>.</p>`
  }

  async #forgetTorn(one: SessionProblem): Promise<void> {
    this.asking = ''
    await this.act(() => this.life.sessions.deleteSession(this.place.scope, one.session, one.seen))
    await this.#load()
  }

  /** Damaged sessions in the list: nothing else would show that they are missing. */
  #damaged(): readonly TemplateResult[] {
    return this.torn.map(one => html`<div class="problem" role="alert"><span dir="auto">${one.detail}.</span>
      ${!this.mayWrite ? nothing : this.asking === one.session ? html`<button class="danger" @click=${() => void this.#forgetTorn(one)} ?disabled=${this.acting}>Forget on every device</button><button @click=${() => (this.asking = '')}>Keep it</button>`
      : html`<button @click=${() => (this.asking = one.session)}>Forget</button>`}</div>`)
  }

  #line(session: string, title: string, about: string, when: number, own: boolean): TemplateResult {
    return html`<li><a class=${session === this.chosen ? 'item chosen' : 'item'} href=${`#/sessions/${encodeURIComponent(session)}`} aria-current=${session === this.chosen ? 'true' : nothing}>
      <span class="title" dir="auto">${title}</span><span class="when">${moment(when)}</span><span class="about" dir="auto">${about}</span>${own ? nothing : PENDING}</a></li>`
  }

  #list(): TemplateResult | typeof nothing {
    if (this.all === null) return nothing
    if (this.hits !== null) {
      return this.hits.length ? html`<ul class="items">${this.hits.map(one => this.#line(one.session, one.text, `${WHO[one.role] ?? 'Other'} in ${this.#titled(one.session)}`, one.at, one.own))}</ul>` : empty('No results', 'Try other words, or another scope.')
    }
    return this.all.length ? html`<ul class="items">${this.all.map(one => this.#line(one.session, one.title, `${many(one.messages, 'message')}${one.preview ? ` · ${one.preview}` : ''}`, one.changed, one.own))}${this.more ? html`<li class="more"><button @click=${() => { this.every = true; void this.#load() }}>Show ${many(this.more, 'older session')}</button></li>` : nothing}</ul>`
    : this.torn.length ? nothing : empty('No sessions yet', 'Conversations that your agents keep appear here.')
  }

  #titled(session: string): string {
    return this.all?.find(one => one.session === session)?.title ?? session
  }

  #detail(): TemplateResult {
    const facts = this.facts
    const back = html`<a class="back button" href="#/sessions">‹ All sessions</a>`
    if (facts === null) return html`<div class="memory" aria-busy=${this.busy}>${back}${this.problem()}</div>`
    return html`<article class="memory" aria-busy=${this.busy}>${back}<div class="bar"><h2 dir="auto">${facts.title}</h2><div class="actions">
        <button @click=${() => void this.#save('markdown')}>Save as Markdown</button><button @click=${() => void this.#save('json')}>As JSON</button>
        ${!this.mayWrite ? nothing : this.sure ? html`<button class="danger" @click=${() => void this.#forget()} ?disabled=${this.acting}>Forget on every device</button><button @click=${() => (this.sure = false)}>Keep it</button>`
        : html`<button @click=${() => (this.sure = true)}>Forget</button>`}</div></div>
      ${this.problem()}${this.#pending(facts)}
      <dl class="facts"><div><dt>Session</dt><dd>${facts.session}</dd></div><div><dt>Holds</dt><dd>${many(facts.messages, 'message')}, about ${many(facts.tokens, 'token')}</dd></div>
        <div><dt>Began</dt><dd>${moment(facts.began)}</dd></div><div><dt>Last written</dt><dd>${moment(facts.changed)}</dd></div><div><dt>On</dt><dd>${many(facts.devices, 'device')}</dd></div></dl>
      ${facts.summary ? html`<details class="summary" ?open=${this.approving}><summary>Summary of ${many(facts.covered, 'message')}, by ${facts.summaryBy}${facts.summaryOwn ? nothing : PENDING}</summary><p class="said" dir="auto">${facts.summary}</p></details>` : nothing}
      ${this.older ? html`<p class="faint">${many(this.older, 'message')} before these. ${this.last < MOST ? html`<button @click=${() => { this.last = Math.min(MOST, this.last + STEP); void this.#show() }}>Show earlier ones</button>` : 'Save it to read them.'}</p>` : nothing}
      <ol class="messages">${this.messages.map(one => html`<li class=${WHO[one.role] === undefined ? '' : one.role}><header><strong>${WHO[one.role] ?? 'Other'}</strong><time class="when">${moment(one.at)}</time>${one.tools.length ? html`<span class="kind" dir="auto">calls ${one.tools.join(', ')}</span>` : nothing}${one.own ? nothing : PENDING}</header>
        ${one.text ? html`<p class="said" dir="auto">${one.text}</p>` : nothing}</li>`)}</ol></article>`
  }

  protected override render(): TemplateResult {
    return html`<div class=${this.chosen ? 'split open' : 'split'}>
      <section class="list" aria-label="Sessions" aria-busy=${this.busy}><div class="tools"><input type="search" placeholder="Search what was said" aria-label="Search sessions" .value=${this.query} @input=${this.#typed} autocomplete="off" spellcheck="false"></div>
        <div class="tools under"><p class="count" role="status">${this.all === null ? 'Loading…' : this.hits === null ? many(this.all.length, 'session') : many(this.hits.length, 'message')}</p></div>
        ${this.chosen ? nothing : this.problem()}${this.#damaged()}${this.#list()}</section>
      <section class="detail" aria-label="Session">${this.chosen ? this.#detail() : empty('Choose a session', 'Its messages appear here.')}</section></div>`
  }
}
customElements.define('sessions-view', SessionsView)
