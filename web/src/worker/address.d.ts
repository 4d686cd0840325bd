/** What the bundler makes of a worker: the address of its script. */
declare module '*?worker&url' {
  const url: string
  export default url
}
