/** The timeline: days with their activity, and the events of one day or of all. */

import { DAY_MS, dateOfDay, localDate, localDay } from '../device/days.ts'
import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import type { DayCount, Happening } from './client.ts'
import { empty, many, View } from './view.ts'

const WEEKS = 26

export class TimelineView extends View {
  static override properties = { ...View.properties, events: { state: true }, next: { state: true }, days: { state: true }, day: { state: true }, ready: { state: true } }
  declare events: readonly Happening[]
  declare next: string | null
  declare days: readonly DayCount[]
  declare day: string
  declare ready: boolean

  constructor() {
    super()
    Object.assign(this, { events: [], next: null, days: [], day: '', ready: false })
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    const before = changed.get('place')
    if (changed.has('place') && (before?.scope !== this.place.scope || before?.revision !== this.place.revision)) void this.#load()
  }

  async #load(): Promise<void> {
    const { client, scope } = this.place
    const since = dateOfDay(begin())
    await this.attempt(async () => {
      const [days, page] = await Promise.all([client.days(scope, since), client.events(scope, this.day ? { day: this.day } : {})])
      Object.assign(this, { days, events: page.events, next: page.next, ready: true })
    })
  }

  async #more(): Promise<void> {
    const { client, scope } = this.place
    await this.act(async () => {
      const page = await client.events(scope, { ...(this.day ? { day: this.day } : {}), cursor: this.next! })
      Object.assign(this, { events: [...this.events, ...page.events], next: page.next })
    })
  }

  #pick(day: string): void {
    this.day = this.day === day ? '' : day
    void this.#load()
  }

  protected override render(): TemplateResult {
    const counted = new Map(this.days.map(one => [one.day, one.events]))
    const most = Math.max(1, ...counted.values())
    const first = begin()
    const all = Array.from({ length: WEEKS * 7 }, (_, at) => dateOfDay(first + at))
    const today = localDate(Date.now())
    return html`<section class="page" aria-busy=${this.busy}><h2>Timeline</h2>${this.problem()}
      <div class="months" aria-hidden="true">${months(first).map(one => html`<span>${one}</span>`)}</div>
      <div class="days" role="group" aria-label="Activity by day">${all.map(day => {
        const events = counted.get(day) ?? 0
        const level = events === 0 ? 0 : Math.min(4, 1 + Math.floor((3 * Math.log1p(events)) / Math.log1p(most)))
        const words = `${day}: ${many(events, 'event')}`
        return day > today ? html`<span class="day none"></span>` : events === 0 ? html`<span class="day l0" title=${words}></span>`
        : html`<button class="day l${level}" title=${words} aria-label=${words} aria-pressed=${this.day === day} @click=${() => this.#pick(day)}></button>`
      })}</div>
      ${this.day ? html`<p class="filter">${this.day} <button class="quiet" @click=${() => this.#pick(this.day)}>Show all days</button></p>` : nothing}
      ${this.ready && !this.events.length ? empty('No events yet', 'Events that agents note, deletes and restores appear here.') : nothing}
      ${byDay(this.events).map(([day, events]) => html`<h3 class="date">${day}</h3><ol class="events">${events.map(one => html`<li>
        <time datetime=${one.at}>${clock(one.at)}</time><span class="kind">${one.type}</span><span dir="auto">${one.about ? html`<a href="#/memories/${one.about}">${one.about}</a>${one.said ? ' · ' : ''}` : nothing}${one.said}</span></li>`)}</ol>`)}
      ${this.next === null ? nothing : html`<button @click=${this.#more} ?disabled=${this.acting}>Show more</button>`}
    </section>`
  }
}
customElements.define('timeline-view', TimelineView)

/** Events by local day, in their order. */
function byDay(events: readonly Happening[]): [string, Happening[]][] {
  const found: [string, Happening[]][] = []
  for (const one of events) {
    const at = new Date(one.at)
    const day = Number.isNaN(at.getTime()) ? 'Not dated' : at.toLocaleDateString(undefined, { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' })
    const last = found.at(-1)
    if (last?.[0] === day) last[1].push(one)
    else found.push([day, [one]])
  }
  return found
}

function clock(at: string): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? at : date.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' })
}

/** The month's name for the week in which it begins, else empty. */
function months(first: number): string[] {
  const begins = (week: number): Date => new Date((first + week * 7) * DAY_MS)
  const month = (week: number): number => begins(week).getUTCMonth()
  return Array.from({ length: WEEKS }, (_, week) =>
    week === 0 || month(week) === month(week - 1) ? '' : begins(week).toLocaleDateString(undefined, { month: 'short', timeZone: 'UTC' }))
}

/** The first Monday shown, counted from 1970-01-01, a Thursday. */
function begin(): number {
  const today = localDay(Date.now())
  return today - ((today + 3) % 7) - (WEEKS - 1) * 7
}
