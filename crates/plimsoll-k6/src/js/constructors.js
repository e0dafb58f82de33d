// Constructors of k6 need no `new`.

export default (Class) => {
  function Constructor(...given) {
    return Reflect.construct(Class, given, new.target ?? Class);
  }
  Object.setPrototypeOf(Constructor, Class);
  Object.defineProperty(Constructor, "name", { value: Class.name });
  Object.defineProperty(Constructor, "length", { value: Class.length });
  Constructor.prototype = Class.prototype;
  Object.defineProperty(Class.prototype, "constructor", { value: Constructor, writable: true, configurable: true });
  return Constructor;
};
