/** Model usage and cost as recorded by programs: totals, and the limits in the settings. */

import { dateOfDay, localDay } from '../device/days.ts'
import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import type { Budget, By, Total } from './life.ts'
import { empty, many, saved, View } from './view.ts'

const BYS: readonly [By, string][] = [['model', 'Model'], ['provider', 'Provider'], ['agent', 'Agent'], ['day', 'Day']]
const SPANS: readonly [number, string][] = [[0, 'All time'], [7, 'Last 7 days'], [30, 'Last 30 days'], [90, 'Last 90 days']]

export class UsageView extends View {
  static override properties = { ...View.properties, totals: { state: true }, budgets: { state: true }, by: { state: true }, span: { state: true } }
  declare totals: readonly Total[] | null
  declare budgets: readonly Budget[]
  declare by: By
  declare span: number
  #requests = 0

  constructor() {
    super()
    Object.assign(this, { totals: null, budgets: [], by: 'model', span: 30 })
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    const before = changed.get('place')
    const moved = changed.has('place') && (before?.scope !== this.place.scope || before?.revision !== this.place.revision || before?.client !== this.place.client)
    if (moved || changed.has('by') || changed.has('span')) void this.#load()
  }

  get #since(): string {
    return this.span ? dateOfDay(localDay(Date.now()) - this.span + 1) : ''
  }

  async #load(): Promise<void> {
    const { scope } = this.place
    const number = ++this.#requests
    const found = await this.attempt(() => Promise.all([this.life.usage.usage(scope, this.by, this.#since), this.life.usage.budgets(scope)]))
    if (found !== undefined && number === this.#requests) Object.assign(this, { totals: found[0], budgets: found[1] })
  }

  async #save(): Promise<void> {
    const blob = await this.act(() => this.life.usage.usageCsv(this.place.scope, this.#since))
    if (blob !== undefined) saved(blob, 'usage.csv')
  }

  #budget(one: Budget): TemplateResult {
    const over = one.limit > 0 && one.spent > one.limit
    return html`<div class="card"><strong>${dollars(one.spent)}</strong><span>${one.period === 'day' ? 'today' : 'this month'}${one.limit ? html`, of ${dollars(one.limit)}${over ? html` <span class="kind warns">more than the limit</span>` : nothing}` : ''}</span>
      ${one.limit ? html`<meter min="0" max=${one.limit} value=${Math.min(one.spent, one.limit)} aria-label=${`Spent of the limit, ${one.period}`}></meter>` : nothing}</div>`
  }

  #table(totals: readonly Total[]): TemplateResult {
    const most = Math.max(1, ...totals.map(one => one.cost))
    const sum = totals.reduce((all, one) => ({ name: '', uses: all.uses + one.uses, input: all.input + one.input, output: all.output + one.output, cost: all.cost + one.cost }))
    const cells = (one: Total): TemplateResult => html`<td>${one.uses.toLocaleString()}</td><td>${one.input.toLocaleString()}</td><td>${one.output.toLocaleString()}</td><td>${dollars(one.cost)}</td>`
    return html`<div class="table" tabindex="0" role="region" aria-label="Usage"><table><thead><tr><th scope="col">${BYS.find(([by]) => by === this.by)![1]}</th><th scope="col">Uses</th><th scope="col">Tokens in</th><th scope="col">Tokens out</th><th scope="col">US dollars</th><th scope="col"><span class="unseen">Share</span></th></tr></thead>
      <tbody>${totals.map(one => html`<tr><th scope="row" dir="auto">${one.name || '(unknown)'}</th>${cells(one)}<td><meter min="0" max=${most} value=${one.cost} aria-label=${`Cost of ${one.name || 'an unknown model'}, relative to the others`}></meter></td></tr>`)}</tbody>
      <tfoot><tr><th scope="row">${many(totals.length, 'row')}</th>${cells(sum)}<td></td></tr></tfoot></table></div>`
  }

  protected override render(): TemplateResult {
    return html`<section class="page" aria-busy=${this.busy}><h2>Usage</h2><p class="faint">Model usage reported by your agents, on all devices. Estimates, not an invoice.</p>${this.problem()}
      ${this.totals === null ? nothing : html`<div class="cards">${this.budgets.map(one => this.#budget(one))}</div>
      <div class="tools"><select aria-label="Add up by" @change=${(event: Event) => (this.by = (event.target as HTMLSelectElement).value as By)}>${BYS.map(([by, words]) => html`<option value=${by} ?selected=${by === this.by}>By ${words.toLowerCase()}</option>`)}</select>
        <select aria-label="Since" @change=${(event: Event) => (this.span = Number((event.target as HTMLSelectElement).value))}>${SPANS.map(([days, words]) => html`<option value=${days} ?selected=${days === this.span}>${words}</option>`)}</select>
        <button @click=${() => void this.#save()} ?disabled=${!this.totals.length}>Save as CSV</button></div>
      ${this.totals.length ? this.#table(this.totals) : empty('Nothing is recorded', 'Programs note what they use with ipfsmem usage add, or over HTTP; a model with note_usage.')}`}</section>`
  }
}
customElements.define('usage-view', UsageView)

/** Format millionths of a US dollar, without zeros after the cents. */
function dollars(micros: number): string {
  return `$${(micros / 1e6).toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 6 })}`
}
