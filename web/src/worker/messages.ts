/** The messages between a page and the worker that holds its vault. */

/** A message from the page, and its answer. */
export type Call = { readonly id: number; readonly do: string; readonly with: readonly unknown[] }
export type Failure = { kind: string; message: string; hint: string }
export type Answer = { readonly id: number; readonly answer?: unknown; readonly error?: Failure }
/** `failed`: data that was shown already could not be stored, and is not shown any more. */
export type PageMessage = { readonly changed: number } | { readonly step: string } | { readonly failed: Failure }
