/** The addresses of this page's own scripts, as its policy requires (Trusted Types). */

type Policy = { createScriptURL(url: string): unknown }
type Makers = { createPolicy(name: string, rules: { createScriptURL(url: string): string }): Policy }

const own = (url: string): string => {
  const { origin } = new URL(url, document.baseURI)
  if (origin !== location.origin) throw new TypeError(`${url} is not of this page`)
  return url
}

const { trustedTypes } = globalThis as unknown as { trustedTypes?: Makers }
const policy: Policy = trustedTypes?.createPolicy('ipfsmem', { createScriptURL: own }) ?? { createScriptURL: own }

/** Refused with a TypeError for a script of another origin. */
export const ownScript = (url: string): unknown => policy.createScriptURL(url)
