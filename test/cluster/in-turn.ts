import { type TestContext, test } from 'node:test';

/** Tests of one cluster, each of which needs what those before it did: after the first that fails, the others are skipped. */
export function testsInTurn(skip: string | false): (name: string, run: (t: TestContext) => Promise<void>) => void {
  let failed: string | undefined;
  return (name, run) => {
    test(name, { skip }, async (t) => {
      if (failed !== undefined) {
        t.skip(`it needs «${failed}», which failed`);
        return;
      }
      try {
        await run(t);
      } catch (error) {
        failed = name;
        throw error;
      }
    });
  };
}
