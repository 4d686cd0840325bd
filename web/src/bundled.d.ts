/** What the bundler makes of a worker: the address of its script; and that it takes style sheets. */
declare module '*?worker&url' {
  const url: string
  export default url
}
declare module '*.css'
