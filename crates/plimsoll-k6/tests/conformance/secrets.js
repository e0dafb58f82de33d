// flags: --secret-source mock=default,name=some,key=hidden-value --secret-source mock=name=other,second=another-value
import secrets from "k6/secrets";
import { check } from "k6";

export default async () => {
  const value = await secrets.get("key");
  const second = await secrets.source("other").get("second");
  check(null, {
    "the default source": () => value === "hidden-value",
    "a named source": () => second === "another-value",
  });
  console.log(`length ${value.length}, value ${value}`);
};
