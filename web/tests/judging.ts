/** What a judge of one file of vectors is given: places to put what it finds. */

import { Refused } from '../src/core/bytes.ts'

export type Rows = any

export type Judge = (all: Rows, court: Court) => void | Promise<void>

/** Counts what was looked at and keeps what was not as it should be. */
export class Court {
  rows = 0
  readonly fails: string[] = []

  same(got: unknown, wanted: unknown, what: string): void {
    this.rows++
    const [left, right] = [shown(got), shown(wanted)]
    if (left !== right) this.fails.push(`${what}: ${left.slice(0, 300)} is not ${right.slice(0, 300)}`)
  }

  /** Refused, by an error of the format and no other. */
  refuses(read: () => unknown, what: string, kind?: string): void {
    this.rows++
    try {
      read()
      this.fails.push(`${what}: was taken`)
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (kind !== undefined && kind !== error.kind) this.fails.push(`${what}: ${error.kind} is not ${kind}`)
    }
  }
}

/** Any value as text, names in one order, bytes as numbers. */
function shown(value: unknown): string {
  return (
    JSON.stringify(value, (_, inner: unknown) => {
      if (inner instanceof Uint8Array) return [...inner]
      if (typeof inner === 'bigint') return `${inner}n`
      if (inner instanceof Map) return [...inner]
      if (inner !== null && typeof inner === 'object' && !Array.isArray(inner)) {
        return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      }
      return inner
    }) ?? 'undefined'
  )
}
