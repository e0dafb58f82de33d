//! Objects whose properties are made when a script first reads them.
//!
//! A script reads one or two of a response's twenty properties, and each that is an object costs some thousand instructions to make
//! and to free. To a script such an object looks like one that has had all of its properties from the start: it lists them in
//! their order, and they can be copied, changed, removed and added. The first change makes all of them, into an ordinary
//! object behind it.

use std::cell::{OnceCell, RefCell};

use rquickjs::class::{
    ClassKind, JsCell, JsClass, PropertyDescriptor, PropertyName, Readable, Trace, Tracer,
};
use rquickjs::function::Constructor;
use rquickjs::{Atom, Class, Ctx, JsLifetime, Object, Result, Value, qjs};

/// What a [lazy object](lazy_object()) has in the end.
pub trait LazyProperties: 'static {
    /// The value of the property at this place of the layout's names. It is asked for once for each object and text; numbers
    /// and the like may be made again.
    fn make<'js>(&self, ctx: &Ctx<'js>, index: usize) -> Result<Value<'js>>;
}

/// The names of properties and the prototype that objects of one kind share. A script holds it and hands it to the native function that
/// makes the objects.
#[derive(Debug)]
pub struct PropertyLayout<'js> {
    names: Vec<Atom<'js>>,
    prototype: Object<'js>,
}

/// See the module.
struct LazyObject<'js> {
    properties: Box<dyn LazyProperties>,
    layout: Class<'js, PropertyLayout<'js>>,
    /// Objects and texts that were made, by their places.
    made: RefCell<Vec<(usize, Value<'js>)>>,
    /// Takes the place of all else once a script has changed something. It has no prototype.
    plain: OnceCell<Object<'js>>,
}

impl<'js> PropertyLayout<'js> {
    /// - `names`: in the order in which scripts see them.
    pub fn new(ctx: &Ctx<'js>, names: &[&str], prototype: Object<'js>) -> Result<Class<'js, Self>> {
        let names = names.iter();
        let names = names.map(|name| Atom::from_str(ctx.clone(), name));
        let layout = Self {
            names: names.collect::<Result<_>>()?,
            prototype,
        };
        Class::instance(ctx.clone(), layout)
    }

    /// The place of a name.
    fn place(&self, name: &Atom<'js>) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }
}

/// Makes an object with these properties.
pub fn lazy_object<'js>(
    layout: &Class<'js, PropertyLayout<'js>>,
    properties: Box<dyn LazyProperties>,
) -> Result<Value<'js>> {
    let prototype = layout.borrow().prototype.clone();
    let object = LazyObject {
        properties,
        layout: layout.clone(),
        made: RefCell::default(),
        plain: OnceCell::new(),
    };
    Class::instance_proto(object, prototype).map(Class::into_value)
}

impl<'js> LazyObject<'js> {
    fn value(&self, ctx: &Ctx<'js>, place: usize) -> Result<Value<'js>> {
        let made = self.made.borrow();
        if let Some((_, value)) = made.iter().find(|(known, _)| *known == place) {
            return Ok(value.clone());
        }
        drop(made);
        let value = self.properties.make(ctx, place)?;
        if value.is_object() || value.is_string() {
            self.made.borrow_mut().push((place, value.clone()));
        }
        Ok(value)
    }

    /// The ordinary object, which has all properties from now on.
    fn plain(&self, ctx: &Ctx<'js>) -> Result<&Object<'js>> {
        if let Some(plain) = self.plain.get() {
            return Ok(plain);
        }
        let plain = Object::new(ctx.clone())?;
        plain.set_prototype(None)?;
        for (place, name) in self.layout.borrow().names.iter().enumerate() {
            plain.set(name.clone(), self.value(ctx, place)?)?;
        }
        self.made.borrow_mut().clear();
        Ok(self.plain.get_or_init(|| plain))
    }

    /// The value of an own property.
    fn own(&self, ctx: &Ctx<'js>, name: &Atom<'js>) -> Result<Option<Value<'js>>> {
        if let Some(plain) = self.plain.get() {
            let is_there = plain.contains_key(name.clone())?;
            return is_there.then(|| plain.get(name.clone())).transpose();
        }
        let place = self.layout.borrow().place(name);
        place.map(|place| self.value(ctx, place)).transpose()
    }
}

impl<'js> JsClass<'js> for LazyObject<'js> {
    const NAME: &'static str = "Object";
    const KIND: ClassKind = ClassKind::Exotic;
    type Mutable = Readable;

    fn constructor(_: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
        Ok(None)
    }

    fn exotic_get_property(
        this: &JsCell<'js, Self>,
        ctx: &Ctx<'js>,
        name: Atom<'js>,
        _: Value<'js>,
    ) -> Result<Value<'js>> {
        let it = this.borrow();
        match it.own(ctx, &name)? {
            Some(value) => Ok(value),
            None => it.layout.borrow().prototype.get(name),
        }
    }

    fn exotic_set_property(
        this: &JsCell<'js, Self>,
        ctx: &Ctx<'js>,
        name: Atom<'js>,
        _: Value<'js>,
        value: Value<'js>,
    ) -> Result<bool> {
        // SAFETY: the value belongs to this context. The engine frees it behind this call, and rquickjs 0.12 frees it too, so it needs a
        // reference for each of them.
        unsafe { qjs::JS_DupValue(ctx.as_raw().as_ptr(), value.as_raw()) };
        this.borrow().plain(ctx)?.set(name, value)?;
        Ok(true)
    }

    fn exotic_delete_property(
        this: &JsCell<'js, Self>,
        ctx: &Ctx<'js>,
        name: Atom<'js>,
    ) -> Result<bool> {
        this.borrow().plain(ctx)?.remove(name)?;
        Ok(true)
    }

    fn exotic_has_property(
        this: &JsCell<'js, Self>,
        ctx: &Ctx<'js>,
        name: Atom<'js>,
    ) -> Result<bool> {
        let it = this.borrow();
        Ok(it.own(ctx, &name)?.is_some() || it.layout.borrow().prototype.contains_key(name)?)
    }

    fn exotic_get_own_property(
        this: &JsCell<'js, Self>,
        ctx: &Ctx<'js>,
        name: Atom<'js>,
    ) -> Result<Option<PropertyDescriptor<'js>>> {
        let value = this.borrow().own(ctx, &name)?;
        Ok(value.map(|value| PropertyDescriptor::new_value(value, true, true, true)))
    }

    fn exotic_get_own_property_names(
        this: &JsCell<'js, Self>,
        _: &Ctx<'js>,
    ) -> Result<Vec<PropertyName<'js>>> {
        let it = this.borrow();
        let names = match it.plain.get() {
            Some(plain) => plain.keys().collect::<Result<_>>()?,
            None => it.layout.borrow().names.clone(),
        };
        let names = names.into_iter().map(|atom| PropertyName {
            atom,
            is_enumerable: true,
        });
        Ok(names.collect())
    }
}

impl<'js> Trace<'js> for LazyObject<'js> {
    fn trace<'a>(&self, tracer: Tracer<'a, 'js>) {
        self.layout.trace(tracer);
        if let Some(plain) = self.plain.get() {
            plain.trace(tracer);
        }
        // The caller holds a value that is being added.
        if let Ok(made) = self.made.try_borrow() {
            made.iter().for_each(|(_, value)| value.trace(tracer));
        }
    }
}

// SAFETY: all of its values live in the context of the lifetime that is replaced.
unsafe impl<'js> JsLifetime<'js> for LazyObject<'js> {
    type Changed<'to> = LazyObject<'to>;
}

impl<'js> JsClass<'js> for PropertyLayout<'js> {
    const NAME: &'static str = "PropertyLayout";
    type Mutable = Readable;

    fn constructor(_: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}

impl<'js> Trace<'js> for PropertyLayout<'js> {
    fn trace<'a>(&self, tracer: Tracer<'a, 'js>) {
        // Each holds its context too.
        self.names.iter().for_each(|name| name.trace(tracer));
        self.prototype.trace(tracer);
    }
}

// SAFETY: all of its values live in the context of the lifetime that is replaced.
unsafe impl<'js> JsLifetime<'js> for PropertyLayout<'js> {
    type Changed<'to> = PropertyLayout<'to>;
}
