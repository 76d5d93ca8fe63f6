/** An engine of several nodes that `npm run check -- cluster` runs, with the test files `test/cluster/NAME*.cluster.test.ts`. */
export interface ClusterPart {
  readonly name: string;
  /**
   * Installs into the cache folder what comes from package registries, once.
   *
   * @returns what is missing here all the same, each with what brings it; empty if the tests can run.
   */
  prepare(note: (text: string) => void): Promise<readonly string[]>;
}
