/** Checks of arguments from untyped callers: the error names the argument, the required form, and the next step. */

import { MemoryError } from './errors.ts'

const kindOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'an array' : value === undefined ? 'undefined' : `${/^[aeiou]/.test(typeof value) ? 'an' : 'a'} ${typeof value}`)

function refuse(name: string, value: unknown, must: string, hint = ''): never {
  throw new MemoryError('usage', `${name} must be ${must} (got ${kindOf(value)})`, hint)
}

/** Require a text. */
export function needText(name: string, value: unknown, hint = ''): asserts value is string {
  if (typeof value !== 'string') refuse(name, value, 'a string', hint)
}

/** Require an object of names and values. */
export function needObject(name: string, value: unknown, hint = ''): asserts value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse(name, value, 'an object', hint)
}

/** Require an object whose values are texts or undefined. */
export function needTexts(name: string, value: unknown): asserts value is Readonly<Record<string, string>> {
  needObject(name, value)
  for (const [key, one] of Object.entries(value)) if (one !== undefined) needText(`${name}.${key.slice(0, 60)}`, one)
}

/** Require one of a few words. */
export function needOneOf(name: string, value: unknown, words: readonly string[]): void {
  if (words.includes(value as string)) return
  const said = typeof value === 'string' ? JSON.stringify(value.slice(0, 60)) : kindOf(value)
  throw new MemoryError('usage', `${name} must be ${words.map(one => `"${one}"`).join(' or ')} (got ${said})`)
}
