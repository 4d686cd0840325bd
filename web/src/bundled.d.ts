/** Modules that the bundler provides: the address of a worker's script, and imported style sheets. */
declare module '*?worker&url' {
  const url: string
  export default url
}
declare module '*.css'
