/** Model usage, summed in this browser from the events of its vault as in every other interface. */

import { dayHere } from '../device/days.ts'
import type { Behind } from './local_vault.ts'
import type { Budget, By, Total, UsageClient } from './life.ts'

const KIND = 'usage'
/** Maximum characters of a name, and maximum tokens and millionths of a dollar of one event. */
const MAX_NAME = 200
const MOST = 1e12

type Used = { readonly at: string; readonly agent: string; readonly provider: string; readonly model: string; readonly input: number; readonly output: number; readonly cost: number }

export class LocalUsage implements UsageClient {
  constructor(readonly memory: () => Behind) {}

  async #list(scope: string, since: string): Promise<readonly Used[]> {
    const events = await this.memory().timeline({ scope, type: KIND })
    return events.filter(one => dayHere(one.ts) >= since).map(one => ({ at: one.ts, agent: text(one['agent']), provider: text(one['provider']), model: text(one['model']), input: number(one['input_tokens']), output: number(one['output_tokens']), cost: number(one['cost_micros']) }))
  }

  async usage(scope: string, by: By, since: string): Promise<readonly Total[]> {
    const sums = new Map<string, Total>()
    for (const one of await this.#list(scope, since)) {
      const name = by === 'day' ? dayHere(one.at) : one[by]
      const { uses, input, output, cost } = sums.get(name) ?? { uses: 0, input: 0, output: 0, cost: 0 }
      sums.set(name, { name, uses: uses + 1, input: input + one.input, output: output + one.output, cost: cost + one.cost })
    }
    const byName = (one: Total, other: Total): number => (one.name < other.name ? -1 : 1)
    return [...sums.values()].sort((one, other) => (by === 'day' ? 0 : other.cost - one.cost) || byName(one, other))
  }

  /** Limits are settings of devices with Python. */
  async budgets(): Promise<readonly Budget[]> {
    return []
  }

  async usageCsv(scope: string, since: string): Promise<Blob> {
    const rows = (await this.#list(scope, since)).map(one => [one.at, cell(one.agent), cell(one.provider), cell(one.model), one.input, one.output, (one.cost / 1e6).toFixed(6).replace(/0{1,4}$/, '')])
    const head = ['time', 'agent', 'provider', 'model', 'input_tokens', 'output_tokens', 'cost_usd']
    return new Blob([[head, ...rows].map(row => `${row.map(quoted).join(',')}\n`).join('')], { type: 'text/csv' })
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_NAME) : ''
}

/** Return a number; anything else is 0, since any program may write such an event. */
function number(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MOST ? value : 0
}

/** Prefix a name that a spreadsheet would read as a formula with an apostrophe. */
function cell(name: string): string {
  return /^[=+\-@\t\r]/.test(name) ? `'${name}` : name
}

function quoted(value: string | number): string {
  const said = String(value)
  return /[",\r\n]/.test(said) ? `"${said.replaceAll('"', '""')}"` : said
}
